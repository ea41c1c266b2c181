// Package fork starts processes from a multi-threaded Go program without executing Go's runtime in the child.
//
// A child is described before the fork as a program: a list of system calls with their arguments, all memory of it on
// the heap. After the fork the child only walks that list (run, in child.go), so it needs no allocation, no stack
// growth and no lock, and every failing step is reported by its index and errno. The parent never waits for the child
// inside the fork (no vfork): a program on a hung filesystem delays nobody but itself.
package fork

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

type kind uint32

const (
	kindCall kind = iota
	kindExec
	kindReady
	kindReap
	kindCloseOthers
)

// Tag names a step in a failure; the caller chooses the values.
type Tag int32

type step struct {
	kind   kind
	tag    Tag
	ignore bool
	call   uintptr
	args   [6]uintptr
	// usesSaved adds the saved result to the argument at this index; -1 = none.
	usesSaved int8
	saves     bool
	// candidates of kindExec: pointers to C strings, tried in order.
	candidates []uintptr
}

// Program is what a child does between its fork and its execve.
type Program struct {
	steps []step
	// keep holds everything the child's arguments point to, on the heap and reachable.
	keep []any
}

// Call appends a system call; a failure ends the child and is reported under the tag.
func (p *Program) Call(tag Tag, number uintptr, args ...uintptr) {
	p.add(tag, false, number, args)
}

// Try appends a system call whose failure does not matter.
func (p *Program) Try(number uintptr, args ...uintptr) {
	p.add(0, true, number, args)
}

// Save appends a system call whose result later calls take by WithSaved.
func (p *Program) Save(tag Tag, number uintptr, args ...uintptr) {
	p.add(tag, false, number, args)
	p.steps[len(p.steps)-1].saves = true
}

// WithSaved appends a call whose argument at the index is the last saved result.
func (p *Program) WithSaved(tag Tag, index int8, number uintptr, args ...uintptr) {
	p.add(tag, false, number, args)
	p.steps[len(p.steps)-1].usesSaved = index
}

// Ready appends the report that the child has come this far and ends its reporting.
func (p *Program) Ready() { p.steps = append(p.steps, step{kind: kindReady, usesSaved: -1}) }

// Reap appends the endless life of a process 1: it collects whatever ends.
func (p *Program) Reap() { p.steps = append(p.steps, step{kind: kindReap, usesSaved: -1}) }

// CloseOthers appends the closing of every descriptor but 0, 1 and 2, so that a child whose execve hangs holds no end of
// another one's pipes.
func (p *Program) CloseOthers() {
	p.steps = append(p.steps, step{kind: kindCloseOthers, usesSaved: -1})
}

// Exec appends the execve of the first candidate that can be executed, as execvp would choose it.
func (p *Program) Exec(tag Tag, candidates, argv, env []string) {
	s := step{kind: kindExec, tag: tag, usesSaved: -1}
	for _, c := range candidates {
		s.candidates = append(s.candidates, p.String(c))
	}
	s.args[1] = p.strings(argv)
	s.args[2] = p.strings(env)
	p.keep = append(p.keep, s.candidates)
	p.steps = append(p.steps, s)
}

// String places a C string beside the program and returns its address.
func (p *Program) String(s string) uintptr {
	b := make([]byte, len(s)+1)
	copy(b, s)
	return p.Bytes(b)
}

// Bytes keeps a non-empty buffer and returns its address.
func (p *Program) Bytes(b []byte) uintptr {
	p.keep = append(p.keep, b)
	return uintptr(unsafe.Pointer(&b[0]))
}

// Keep returns the address of a value that lives as long as the program.
func Keep[T any](p *Program, v T) uintptr {
	c := new(T)
	*c = v
	p.keep = append(p.keep, c)
	return uintptr(unsafe.Pointer(c))
}

// KeepSlice returns the address of a slice's first element; 0 when it is empty.
func KeepSlice[T any](p *Program, s []T) uintptr {
	if len(s) == 0 {
		return 0
	}
	p.keep = append(p.keep, s)
	return uintptr(unsafe.Pointer(&s[0]))
}

func (p *Program) strings(list []string) uintptr {
	pointers := make([]uintptr, len(list)+1)
	for i, s := range list {
		pointers[i] = p.String(s)
	}
	p.keep = append(p.keep, pointers)
	return uintptr(unsafe.Pointer(&pointers[0]))
}

func (p *Program) add(tag Tag, ignore bool, number uintptr, args []uintptr) {
	s := step{kind: kindCall, tag: tag, ignore: ignore, call: number, usesSaved: -1}
	copy(s.args[:], args)
	p.steps = append(p.steps, s)
}

// Options of one fork.
type Options struct {
	// Flags are CLONE_NEW* flags of the child.
	Flags uint64
	// CgroupFD is the directory of the cgroup the child starts in; -1 = the agent's.
	CgroupFD int
	// PidNamespaceFD joins a PID namespace; -1 = the agent's. OwnPidNamespaceFD leads the thread back.
	PidNamespaceFD    int
	OwnPidNamespaceFD int
	// Share lets the child use this process's memory until its execve or exit, instead of a copy: copying the page
	// tables would cost more than everything else. A child that stays must not share.
	Share bool
}

// sharedStackBytes is more than the deepest of the child's calls needs.
const sharedStackBytes = 16 << 10

// Child is a forked process that has not said yet whether its program succeeded.
type Child struct {
	Pid   int
	PidFD int
	// Status is the read end of the child's report: see ParseReport. It ends when the program is executed.
	Status int
	// program must stay reachable while the child may still read it.
	program *Program
}

// Done says that the child has executed its program or has ended, so that nothing reads the program's memory any more.
func (c Child) Done() { runtime.KeepAlive(c.program) }

type cloneArgs struct {
	flags, pidFD, childTid, parentTid, exitSignal, stack, stackSize, tls, setTid, setTidSize, cgroup uint64
}

// Start forks and lets the child run the program.
func (p *Program) Start(o Options) (Child, error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return Child{}, err
	}
	defer unix.Close(pipe[1])
	pidFD := new(int32)
	args := &cloneArgs{
		flags:      o.Flags | unix.CLONE_PIDFD | unix.CLONE_CLEAR_SIGHAND,
		pidFD:      uint64(uintptr(unsafe.Pointer(pidFD))),
		exitSignal: uint64(unix.SIGCHLD),
	}
	if o.CgroupFD >= 0 {
		args.flags |= unix.CLONE_INTO_CGROUP
		args.cgroup = uint64(o.CgroupFD)
	}
	if o.Share {
		args.flags |= unix.CLONE_VM
		args.stack = uint64(p.Bytes(make([]byte, sharedStackBytes)))
		args.stackSize = sharedStackBytes
	}
	p.keep = append(p.keep, pidFD, args)
	pid, errno := fork(p, args, uintptr(pipe[1]), o.PidNamespaceFD, o.OwnPidNamespaceFD)
	if errno != 0 {
		unix.Close(pipe[0])
		return Child{}, errno
	}
	return Child{Pid: int(pid), PidFD: int(*pidFD), Status: pipe[0], program: p}, nil
}
