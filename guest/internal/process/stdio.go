package process

import (
	"strconv"

	guestv1 "space/guest/gen/guest/v1"
	"space/guest/internal/workload"

	"golang.org/x/sys/unix"
)

// stdio is both ends of what a process is started with.
type stdio struct {
	// theirs are the descriptors that become 0, 1 and 2 of the child.
	theirs   [3]int
	sources  []*source
	input    *stdin
	terminal int
}

func openStdio(r *guestv1.Start, user workload.User) (*stdio, error) {
	s := &stdio{theirs: [3]int{-1, -1, -1}, terminal: -1}
	var err error
	if r.Pty != nil {
		err = s.openTerminal(r.Pty, user)
	} else {
		err = s.openPipes(r.StdinPipe)
	}
	if err != nil {
		s.closeTheirs()
		s.closeOurs()
		return nil, err
	}
	return s, nil
}

func (s *stdio) openPipes(stdinPipe bool) error {
	var err error
	if stdinPipe {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			return err
		}
		s.theirs[0] = fds[0]
		s.input = &stdin{fd: fds[1]}
		if err := unix.SetNonblock(fds[1], true); err != nil {
			return err
		}
	} else if s.theirs[0], err = unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return err
	}
	for i, stream := range []Stream{guestv1.Output_STREAM_STDOUT, guestv1.Output_STREAM_STDERR} {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			return err
		}
		s.theirs[1+i] = fds[1]
		s.sources = append(s.sources, &source{stream: stream, fd: fds[0]})
		if err := unix.SetNonblock(fds[0], true); err != nil {
			return err
		}
	}
	return nil
}

// openTerminal makes a terminal in the workload's own devpts, whose ptmx the agent reaches through its own mount of it.
func (s *stdio) openTerminal(size *guestv1.PtySize, user workload.User) error {
	master, err := unix.Open(workload.TerminalMount+"/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	s.terminal = master
	s.sources = []*source{{stream: guestv1.Output_STREAM_PTY, fd: master, pty: true}}
	writer, err := unix.FcntlInt(uintptr(master), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return err
	}
	s.input = &stdin{fd: writer, pty: true}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	number, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return err
	}
	if err := resize(master, size.Cols, size.Rows); err != nil {
		return err
	}
	name := workload.TerminalMount + "/" + strconv.Itoa(number)
	if err := unix.Chown(name, int(user.UID), -1); err != nil {
		return err
	}
	if s.theirs[0], err = unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0); err != nil {
		return err
	}
	s.theirs[1], s.theirs[2] = s.theirs[0], s.theirs[0]
	return nil
}

func resize(master int, cols, rows uint32) error {
	return unix.IoctlSetWinsize(master, unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(cols), Row: uint16(rows)})
}

func (s *stdio) closeTheirs() {
	for i, fd := range s.theirs {
		if fd >= 0 && (i == 0 || fd != s.theirs[0]) {
			unix.Close(fd)
		}
	}
}

func (s *stdio) closeOurs() {
	for _, source := range s.sources {
		unix.Close(source.fd)
	}
	if s.input != nil {
		unix.Close(s.input.fd)
	}
}
