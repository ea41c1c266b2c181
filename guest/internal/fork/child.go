package fork

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const signalSetSize = 8

// fork joins the PID namespace on this thread only for the clone, with every signal blocked, so that the Go runtime
// neither preempts this goroutine nor starts a thread here meanwhile.
func fork(p *Program, args *cloneArgs, status uintptr, joinFD, ownFD int) (uintptr, syscall.Errno) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	all, old := ^uint64(0), uint64(0)
	sigprocmask(&all, &old)
	defer sigprocmask(&old, nil)
	if joinFD >= 0 {
		if _, _, e := syscall.RawSyscall(unix.SYS_SETNS, uintptr(joinFD), unix.CLONE_NEWPID, 0); e != 0 {
			return 0, e
		}
	}
	pid, e := clone(p, args, status)
	if joinFD >= 0 {
		if _, _, e := syscall.RawSyscall(unix.SYS_SETNS, uintptr(ownFD), unix.CLONE_NEWPID, 0); e != 0 {
			panic("setns back: " + e.Error())
		}
	}
	return pid, e
}

//go:nosplit
func sigprocmask(set, old *uint64) {
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(set)),
		uintptr(unsafe.Pointer(old)), signalSetSize, 0, 0)
}

// cloneShared is in clone_<arch>.s.
//
//go:noescape
func cloneShared(args *cloneArgs, size uintptr, p *Program, status uintptr) int

//go:nosplit
//go:norace
func clone(p *Program, args *cloneArgs, status uintptr) (uintptr, syscall.Errno) {
	if args.flags&unix.CLONE_VM != 0 {
		pid := cloneShared(args, unsafe.Sizeof(*args), p, status)
		if pid < 0 {
			return 0, syscall.Errno(-pid)
		}
		return uintptr(pid), 0
	}
	pid, _, e := syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(args)), unsafe.Sizeof(*args), 0)
	if e != 0 || pid != 0 {
		return pid, e
	}
	run(p, status)
	return 0, 0
}

// run is all the child ever executes of this binary: no allocation, no write of a pointer, no growing stack.
//
//go:nosplit
//go:norace
func run(p *Program, status uintptr) {
	self, _, _ := syscall.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
	report(status, reportPid, int32(self))
	saved := uintptr(0)
	for i := range p.steps {
		s := &p.steps[i]
		switch s.kind {
		case kindCall:
			args := s.args
			if s.usesSaved >= 0 {
				args[s.usesSaved&7] = saved
			}
			r, _, e := syscall.RawSyscall6(s.call, args[0], args[1], args[2], args[3], args[4], args[5])
			if e != 0 && !s.ignore {
				fail(status, int32(s.tag), e)
			}
			if s.saves {
				saved = r
			}
		case kindExec:
			exec(s, status)
		case kindReady:
			report(status, reportReady, 0)
			syscall.RawSyscall(unix.SYS_CLOSE, status, 0, 0)
		case kindReap:
			reap()
		case kindCloseOthers:
			if status != 3 {
				syscall.RawSyscall(unix.SYS_DUP3, status, 3, unix.O_CLOEXEC)
				status = 3
			}
			syscall.RawSyscall(unix.SYS_CLOSE_RANGE, 4, uintptr(^uint32(0)), 0)
		}
	}
	syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
}

// exec tries the candidates: what is not there is passed over, what may not be executed is remembered, and a file
// that is there although the kernel says ENOENT lacks its interpreter.
//
//go:nosplit
//go:norace
func exec(s *step, status uintptr) {
	none := uint64(0)
	sigprocmask(&none, nil)
	last := unix.ENOENT
	for _, path := range s.candidates {
		_, _, e := syscall.RawSyscall(unix.SYS_EXECVE, path, s.args[1], s.args[2])
		switch e {
		case unix.ENOENT:
			at := unix.AT_FDCWD
			if _, _, e := syscall.RawSyscall(unix.SYS_FACCESSAT, uintptr(at), path, unix.F_OK); e == 0 {
				report(status, reportInterpreter, 0)
				fail(status, int32(s.tag), unix.ENOENT)
			}
		case unix.ENOTDIR:
		case unix.EACCES:
			last = unix.EACCES
		default:
			fail(status, int32(s.tag), e)
		}
	}
	fail(status, int32(s.tag), last)
}

// reap is the workload's process 1: every signal stays blocked, SIGCHLD is waited for, and what ended is collected.
//
//go:nosplit
//go:norace
func reap() {
	set := uint64(1) << (unix.SIGCHLD - 1)
	for {
		syscall.RawSyscall6(unix.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&set)), 0, 0, signalSetSize, 0, 0)
		for {
			all := -1
			pid, _, e := syscall.RawSyscall6(unix.SYS_WAIT4, uintptr(all), 0, unix.WNOHANG, 0, 0, 0)
			if e != 0 || pid == 0 {
				break
			}
		}
	}
}

//go:nosplit
//go:norace
func fail(status uintptr, tag int32, e syscall.Errno) {
	report(status, tag, int32(e))
	syscall.RawSyscall(unix.SYS_EXIT_GROUP, 127, 0, 0)
}

//go:nosplit
//go:norace
func report(status uintptr, tag, value int32) {
	record := [2]int32{tag, value}
	syscall.RawSyscall(unix.SYS_WRITE, status, uintptr(unsafe.Pointer(&record)), unsafe.Sizeof(record))
}
