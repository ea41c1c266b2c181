package process

import (
	"space/guest/internal/poll"

	"golang.org/x/sys/unix"
)

const (
	// initialPipeBytes is the kernel's default; a pipe that was once found full grows to largePipeBytes.
	initialPipeBytes = 64 << 10
	largePipeBytes   = 1 << 20
	// discardBytes is what is dropped of a daemon's output at a time.
	discardBytes = 1 << 20
	// maxPtyDrainBytes bounds what is read of a terminal after its leader's end: it cannot say how much it holds.
	maxPtyDrainBytes = 256 << 10
	// maxReadsAWake keeps one process from occupying the poller.
	maxReadsAWake = 8
)

// source is the agent's end of one output pipe or of a terminal. All of it runs under the process's lock.
type source struct {
	process *Process
	stream  Stream
	fd      int
	pty     bool
	watch   *poll.Watch
	paused  bool
	grown   bool
	// drained: nothing of the leader's output is left in it.
	drained bool
	// remaining is how much of it is still the leader's, once that has ended; -1 before.
	remaining int64
	closed    bool
}

func (s *source) begin(poller *poll.Poller) error {
	s.remaining = -1
	var err error
	s.watch, err = poller.Watch(s.fd, poll.In, s.onReadable)
	return err
}

func (s *source) onReadable() {
	p := s.process
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.closed {
		return
	}
	if s.drained {
		s.discard()
		return
	}
	s.read(maxReadsAWake)
	p.finishIfDrained()
}

// readAll reads until the pipe is empty or the limit is reached.
func (s *source) readAll() {
	if !s.drained && !s.closed {
		s.read(MaxUnacknowledgedBytes)
	}
}

// read takes in what is there, in at most so many reads.
func (s *source) read(reads int) {
	p := s.process
	got := false
	for ; reads > 0 && !s.drained; reads-- {
		into := p.output.space()
		if len(into) == 0 {
			s.pause()
			break
		}
		if s.remaining >= 0 {
			into = into[:min(int64(len(into)), s.remaining)]
		}
		n, err := unix.Read(s.fd, into)
		if err == unix.EINTR {
			continue
		}
		if err == unix.EAGAIN {
			if s.remaining >= 0 {
				s.drained = true
			}
			break
		}
		if err != nil || n == 0 {
			s.close()
			break
		}
		p.output.commit(s.stream, n)
		got = true
		if s.remaining >= 0 {
			s.remaining -= int64(n)
			s.drained = s.remaining == 0
		}
		if n < len(into) && n < initialPipeBytes {
			break
		}
		s.grow(n)
	}
	if got {
		p.wake()
	}
}

// leaderEnded fixes what is still to be read: what the pipe holds now. The rest belongs to whoever outlives the leader.
func (s *source) leaderEnded() {
	if s.closed {
		return
	}
	s.remaining = maxPtyDrainBytes
	if !s.pty {
		n, err := unix.IoctlGetInt(s.fd, unix.TIOCINQ)
		if err != nil {
			n = 0
		}
		s.remaining = int64(n)
	}
	if s.remaining == 0 {
		s.drained = true
		s.resume()
		s.discard()
		return
	}
	s.read(maxReadsAWake)
}

// discard drops what a daemon writes after its leader's end (P3).
func (s *source) discard() {
	if s.pty {
		var sink [4096]byte
		n, err := unix.Read(s.fd, sink[:])
		if (err != nil && err != unix.EAGAIN && err != unix.EINTR) || (err == nil && n == 0) {
			s.close()
		}
		return
	}
	n, err := unix.Splice(s.fd, nil, s.process.table.nullFD, nil, discardBytes, unix.SPLICE_F_NONBLOCK)
	if (err != nil && err != unix.EAGAIN && err != unix.EINTR) || (err == nil && n == 0) {
		s.close()
	}
}

func (s *source) grow(n int) {
	if !s.pty && !s.grown && n >= initialPipeBytes/2 {
		s.grown = true
		_, _ = unix.FcntlInt(uintptr(s.fd), unix.F_SETPIPE_SZ, largePipeBytes)
	}
}

func (s *source) pause() {
	s.paused = true
	s.watch.Pause()
}

func (s *source) resume() {
	if s.paused && !s.closed {
		s.paused = false
		s.watch.Resume()
	}
}

func (s *source) close() {
	s.drained = true
	if s.closed {
		return
	}
	s.closed = true
	s.watch.Close()
	unix.Close(s.fd)
}
