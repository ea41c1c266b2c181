package fork

import (
	"encoding/binary"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Tags of the child's own records; those of the caller are positive.
const (
	reportPid         = -1
	reportReady       = -2
	reportInterpreter = -3
)

// Report is what a child said about its program. It is complete when the pipe has ended or Ready is set.
type Report struct {
	// Pid is the child's pid as it sees itself, inside its PID namespace.
	Pid   int
	Ready bool
	// Failed is the tag of the step that failed, with its Errno; 0 = none failed.
	Failed Tag
	Errno  syscall.Errno
	// MissingInterpreter tells a program whose interpreter is missing from a program that is missing.
	MissingInterpreter bool

	buffer []byte
}

// Read takes in what the pipe holds and says whether the report is complete. It does not block.
func (r *Report) Read(status int) bool {
	var chunk [64]byte
	for {
		n, err := unix.Read(status, chunk[:])
		if err == unix.EINTR {
			continue
		}
		if err == unix.EAGAIN {
			return r.Ready
		}
		if err != nil || n == 0 {
			return true
		}
		r.buffer = append(r.buffer, chunk[:n]...)
		for len(r.buffer) >= 8 {
			r.take(int32(binary.NativeEndian.Uint32(r.buffer)), int32(binary.NativeEndian.Uint32(r.buffer[4:])))
			r.buffer = r.buffer[8:]
		}
	}
}

func (r *Report) take(tag, value int32) {
	switch tag {
	case reportPid:
		r.Pid = int(value)
	case reportReady:
		r.Ready = true
	case reportInterpreter:
		r.MissingInterpreter = true
	default:
		r.Failed, r.Errno = Tag(tag), syscall.Errno(value)
	}
}

// Wait blocks until the report is complete or the time is over; it does not reap the child.
func (c Child) Wait(limit time.Duration) (Report, bool) {
	var r Report
	end := time.Now().Add(limit)
	for {
		if r.Read(c.Status) {
			return r, true
		}
		left := time.Until(end)
		if left <= 0 {
			return r, false
		}
		poll := []unix.PollFd{{Fd: int32(c.Status), Events: unix.POLLIN}}
		unix.Poll(poll, int(left.Milliseconds())+1)
	}
}
