package process

import (
	"errors"

	"space/guest/internal/poll"

	"golang.org/x/sys/unix"
)

// MaxPendingStdinBytes bounds what the node sends ahead of what the process has read.
const MaxPendingStdinBytes = 1 << 20

var (
	// ErrStdinGap says that bytes are missing before the given ones.
	ErrStdinGap = errors.New("stdin has a gap")
	// ErrStdinFull says that the node sent more than MaxPendingStdinBytes ahead.
	ErrStdinFull = errors.New("too much stdin in advance")
	// ErrNoStdin says that the process has no pipe for stdin.
	ErrNoStdin = errors.New("stdin is /dev/null")
)

const endOfTransmission = 4

// stdin is the agent's end of a process's input. All of it runs under the process's lock.
type stdin struct {
	process *Process
	fd      int
	pty     bool
	watch   *poll.Watch
	waiting bool

	accepted int64
	written  int64
	pending  []byte
	// closeAt is the offset behind which it is closed; -1 = not asked for.
	closeAt int64
	broken  bool
	closed  bool
}

func (s *stdin) begin(poller *poll.Poller) error {
	s.closeAt = -1
	var err error
	s.watch, err = poller.Watch(s.fd, poll.Out, s.onWritable)
	if err == nil {
		s.watch.Pause()
	}
	return err
}

func (s *stdin) give(offset int64, data []byte) error {
	if offset > s.accepted {
		return ErrStdinGap
	}
	skip := s.accepted - offset
	if skip >= int64(len(data)) {
		return nil
	}
	data = data[skip:]
	if s.broken || s.closed {
		s.accepted += int64(len(data))
		return nil
	}
	if len(s.pending)+len(data) > MaxPendingStdinBytes {
		return ErrStdinFull
	}
	s.accepted += int64(len(data))
	s.pending = append(s.pending, data...)
	s.flush()
	return nil
}

func (s *stdin) closeBehind(offset int64) error {
	if offset > s.accepted {
		return ErrStdinGap
	}
	s.closeAt = offset
	s.flush()
	return nil
}

func (s *stdin) onWritable() {
	s.process.mu.Lock()
	defer s.process.mu.Unlock()
	if !s.closed {
		s.flush()
	}
}

// flush writes what the pipe takes, and waits for the poller when it takes no more.
func (s *stdin) flush() {
	before := s.written
	for len(s.pending) > 0 && !s.closed {
		n, err := unix.Write(s.fd, s.pending)
		if err == unix.EINTR {
			continue
		}
		if err == unix.EAGAIN {
			break
		}
		if err != nil {
			s.broken = true
			s.close()
			break
		}
		s.pending = s.pending[n:]
		s.written += int64(n)
	}
	if len(s.pending) == 0 {
		s.pending = nil
		if s.closeAt >= 0 && !s.closed {
			if s.pty {
				_, _ = unix.Write(s.fd, []byte{endOfTransmission})
				s.closeAt = -1
			} else {
				s.close()
			}
		}
	}
	s.wait(len(s.pending) > 0 && !s.closed)
	if s.written != before || s.broken {
		s.process.wake()
	}
}

func (s *stdin) wait(want bool) {
	if want == s.waiting || s.closed {
		return
	}
	s.waiting = want
	if want {
		s.watch.Resume()
	} else {
		s.watch.Pause()
	}
}

// abandon drops what the ended leader did not read.
func (s *stdin) abandon() {
	if len(s.pending) > 0 {
		s.broken = true
	}
	s.close()
}

func (s *stdin) close() {
	s.pending = nil
	if s.closed {
		return
	}
	s.closed = true
	s.watch.Close()
	unix.Close(s.fd)
}
