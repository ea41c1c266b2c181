package process

import (
	"errors"
	"sync"
	"time"

	guestv1 "space/guest/gen/guest/v1"
	"space/guest/internal/fork"
	"space/guest/internal/poll"
	"space/guest/internal/workload"

	"golang.org/x/sys/unix"
)

const (
	// startTimeout bounds the time from the fork to the execve: a program on a hung filesystem is ended and refused.
	startTimeout = 30 * time.Second
	// maxStartsAtOnce is how many children may be between the two; further starts wait for their turn. More at once
	// bring nothing on one or two vCPUs, and let the scheduler starve the oldest of them for seconds.
	maxStartsAtOnce = 8
)

// ErrFrozen refuses a start while the workload is frozen.
var ErrFrozen = errors.New("the workload is frozen")

// InvalidStart refuses a request that no host should send.
type InvalidStart struct{ Reason string }

func (e *InvalidStart) Error() string { return e.Reason }

// StartFailure is a start the guest refused, with the errno's name.
type StartFailure struct {
	Reason guestv1.StartFailed_Reason
	Errno  string
}

func (e *StartFailure) Error() string { return "start failed: " + e.Errno }

// Steps of a start whose failures mean different things.
const (
	tagSetup fork.Tag = iota + 1
	tagCwd
	tagExec
)

// Start starts a process, or finds the one that was started under this id before.
func (t *Table) Start(r *guestv1.Start) (*Process, error) {
	if err := check(r); err != nil {
		return nil, err
	}
	t.mu.Lock()
	if p := t.processes[r.ProcessId]; p != nil {
		t.mu.Unlock()
		<-p.started
		return p, p.failure
	}
	if t.frozen {
		t.mu.Unlock()
		return nil, ErrFrozen
	}
	if len(t.processes) >= MaxProcesses {
		t.mu.Unlock()
		return nil, resources(unix.EAGAIN)
	}
	p := &Process{ID: r.ProcessId, table: t, started: make(chan struct{}), terminal: -1}
	t.processes[p.ID] = p
	t.starting++
	env := t.env
	t.mu.Unlock()

	t.turns <- struct{}{}
	p.failure = t.start(p, r, env)
	<-t.turns
	close(p.started)
	t.endStart()
	if p.failure != nil {
		t.mu.Lock()
		delete(t.processes, p.ID)
		t.mu.Unlock()
		return nil, p.failure
	}
	return p, nil
}

func (t *Table) start(p *Process, r *guestv1.Start, sandboxEnv map[string]string) error {
	user, err := t.workload.Lookup(r.User)
	if err != nil {
		return &StartFailure{Reason: guestv1.StartFailed_REASON_UNKNOWN_USER, Errno: "ENOENT"}
	}
	env := environment(user, sandboxEnv, r.Env)
	stdio, err := openStdio(r, user)
	if err != nil {
		return resources(err)
	}
	defer stdio.closeTheirs()
	if p.cgroup, err = t.pool.Take(); err != nil {
		stdio.closeOurs()
		return resources(err)
	}
	program := t.program(r, user, env, stdio)
	child, err := t.workload.Fork(program, p.cgroup)
	if err != nil {
		stdio.closeOurs()
		t.pool.Give(p.cgroup)
		return resources(err)
	}
	report, done := t.await(child)
	unix.Close(child.Status)
	child.Done()
	if !done || report.Errno != 0 {
		stdio.closeOurs()
		t.abandon(p, child)
		if !done {
			return &StartFailure{Reason: guestv1.StartFailed_REASON_OTHER, Errno: "ETIMEDOUT"}
		}
		return failure(report)
	}
	p.Pid, p.hostPid, p.pidFD = report.Pid, child.Pid, child.PidFD
	p.StartedAtMs = time.Now().UnixMilli()
	return p.begin(r, stdio)
}

// begin watches the descriptors of a process that runs. A failure here ends it.
func (p *Process) begin(r *guestv1.Start, stdio *stdio) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	poller := p.table.poller
	for _, s := range stdio.sources {
		s.process = p
		if err := s.begin(poller); err != nil {
			return p.giveUp(stdio, err)
		}
		p.sources = append(p.sources, s)
	}
	if stdio.input != nil {
		stdio.input.process = p
		if err := stdio.input.begin(poller); err != nil {
			return p.giveUp(stdio, err)
		}
		p.stdin = stdio.input
	}
	p.terminal = stdio.terminal
	watch, err := poller.Watch(p.pidFD, unix.EPOLLIN, p.onLeaderEnd)
	if err != nil {
		return p.giveUp(stdio, err)
	}
	p.watch = watch
	if r.TimeoutMs > 0 {
		p.timer = time.AfterFunc(time.Duration(r.TimeoutMs)*time.Millisecond, p.onTimeout)
	}
	return nil
}

func (p *Process) giveUp(stdio *stdio, err error) error {
	for _, s := range p.sources {
		s.close()
	}
	if p.stdin != nil {
		p.stdin.close()
	}
	p.table.abandon(p, fork.Child{Pid: p.hostPid, PidFD: p.pidFD})
	return resources(err)
}

// abandon ends a child that did not become a process.
func (t *Table) abandon(p *Process, child fork.Child) {
	_ = p.cgroup.Kill()
	unix.Close(child.PidFD)
	go func() {
		for {
			if _, err := unix.Wait4(child.Pid, nil, 0, nil); err != unix.EINTR {
				break
			}
		}
		child.Done()
		t.pool.Give(p.cgroup)
	}()
}

// await waits in the poller until the child has executed its program or failed to.
func (t *Table) await(child fork.Child) (fork.Report, bool) {
	a := awaiting{status: child.Status, done: make(chan struct{})}
	a.mu.Lock()
	watch, err := t.poller.Watch(child.Status, unix.EPOLLIN, a.onReadable)
	a.watch = watch
	a.mu.Unlock()
	if err != nil {
		return fork.Report{}, false
	}
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	select {
	case <-a.done:
	case <-timer.C:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	watch.Close()
	complete := a.complete
	a.complete = true
	return a.report, complete
}

type awaiting struct {
	mu       sync.Mutex
	watch    *poll.Watch
	status   int
	report   fork.Report
	complete bool
	done     chan struct{}
}

func (a *awaiting) onReadable() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.complete && a.report.Read(a.status) {
		a.complete = true
		a.watch.Pause()
		close(a.done)
	}
}

// program is what the child does before it is the user's process.
func (t *Table) program(r *guestv1.Start, user workload.User, env map[string]string, stdio *stdio) *fork.Program {
	p := &fork.Program{}
	p.Call(tagSetup, unix.SYS_SETSID)
	for fd, theirs := range stdio.theirs {
		p.Call(tagSetup, unix.SYS_DUP2, uintptr(theirs), uintptr(fd))
	}
	t.workload.Join(tagSetup, p)
	p.CloseOthers()
	if stdio.terminal >= 0 {
		p.Call(tagSetup, unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0)
	}
	p.Call(tagSetup, unix.SYS_UMASK, 0o022)
	limit := fork.Keep(p, unix.Rlimit{Cur: softOpenFiles, Max: hardOpenFiles})
	p.Call(tagSetup, unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, limit, 0)
	groups := append([]uint32{}, user.Groups...)
	p.Call(tagSetup, unix.SYS_SETGROUPS, uintptr(len(groups)), fork.KeepSlice(p, groups))
	gid, uid := uintptr(user.GID), uintptr(user.UID)
	p.Call(tagSetup, unix.SYS_SETRESGID, gid, gid, gid)
	p.Call(tagSetup, unix.SYS_SETRESUID, uid, uid, uid)
	cwd := r.Cwd
	if cwd == "" {
		cwd = user.Home
	}
	p.Call(tagCwd, unix.SYS_CHDIR, p.String(cwd))
	p.Exec(tagExec, candidates(r.Argv[0], env["PATH"]), r.Argv, list(env))
	return p
}

const (
	softOpenFiles = 1024
	hardOpenFiles = 1 << 20
)
