// Package workload is everything a sandbox runs: its cgroup subtree, its namespaces, its process 1, its users and the
// root drive below it.
//
// The agent itself stays outside: in the parent PID namespace (invisible to kill, ptrace and /proc of the workload),
// in the root cgroup and on the initramfs.
package workload

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"space/guest/internal/console"
	"space/guest/internal/fork"
	"space/guest/internal/poll"

	"golang.org/x/sys/unix"
)

// ErrTimeout says that a child was ended because it took too long.
var ErrTimeout = errors.New("timed out")

// initTimeout bounds the set-up of the workload's namespaces.
const initTimeout = 10 * time.Second

// Workload is the running subtree.
type Workload struct {
	Cgroup *Cgroup
	Pool   *Pool
	Root   *Root

	run      runFolder
	drive    string
	hooks    *Cgroup
	accounts Accounts
	lookup   sync.Mutex
	initPid  int
	initFD   int
	ownFD    int
}

// Config is what the boot prepared for a workload.
type Config struct {
	// Drive is the block device of the root drive.
	Drive string
	// DriveMount is where the agent mounted the root drive.
	DriveMount string
	// RunMount is a tmpfs that becomes the workload's /run; ModulesMount its /lib/modules, "" = none.
	RunMount     string
	ModulesMount string
	Hostname     string
	// Systemd starts /sbin/init of the root drive as process 1 instead of the reaper.
	Systemd bool
}

// Start makes the cgroups and namespaces and starts the workload's process 1.
func Start(c Config, poller *poll.Poller) (*Workload, error) {
	w := &Workload{}
	var err error
	if w.Cgroup, err = makeRoot(); err != nil {
		return nil, fmt.Errorf("cgroups: %w", err)
	}
	if w.hooks, err = makeCgroup(hooksPath); err != nil {
		return nil, err
	}
	initCgroup, err := makeCgroup(initPath)
	if err != nil {
		return nil, err
	}
	rootFD, err := unix.Open(c.DriveMount, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	w.Root = &Root{FD: rootFD}
	w.accounts.root = w.Root
	w.drive = c.Drive
	if w.run.FD, err = unix.Open(c.RunMount, unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return nil, err
	}
	if w.ownFD, err = unix.PidfdOpen(os.Getpid(), 0); err != nil {
		return nil, err
	}
	if err := w.startInit(c, initCgroup); err != nil {
		return nil, fmt.Errorf("process 1: %w", err)
	}
	w.Pool, err = newPool(poller)
	return w, err
}

// startInit forks process 1 in the root of the subtree, so that this becomes the root of its cgroup namespace, and moves
// it below before the controllers are given out: a cgroup has processes or controllers, not both.
func (w *Workload) startInit(c Config, initCgroup *Cgroup) error {
	var gate [2]int
	if err := unix.Pipe2(gate[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	defer unix.Close(gate[0])
	program, err := initProgram(c, gate[0])
	if err != nil {
		return err
	}
	child, err := program.Start(fork.Options{
		Flags:    unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
		CgroupFD: w.Cgroup.FD, PidNamespaceFD: -1,
	})
	if err != nil {
		unix.Close(gate[1])
		return err
	}
	w.initPid, w.initFD = child.Pid, child.PidFD
	err = initCgroup.Write("cgroup.procs", strconv.Itoa(child.Pid))
	_, _ = unix.Write(gate[1], []byte{0})
	unix.Close(gate[1])
	if err != nil {
		return err
	}
	report, done := child.Wait(initTimeout)
	unix.Close(child.Status)
	if !done || report.Errno != 0 {
		return fmt.Errorf("step %d: %w", report.Failed, report.Errno)
	}
	return w.giveControllers()
}

// makeRoot makes the root of the subtree, with every controller the kernel has.
func makeRoot() (*Cgroup, error) {
	controllers, err := os.ReadFile(mountPoint + "/cgroup.controllers")
	if err != nil {
		return nil, err
	}
	for name := range strings.FieldsSeq(string(controllers)) {
		_ = os.WriteFile(mountPoint+"/cgroup.subtree_control", []byte("+"+name), 0o644)
	}
	return makeCgroup(rootPath)
}

// giveControllers gives every controller the kernel has to the workload.
func (w *Workload) giveControllers() error {
	controllers, err := w.Cgroup.Read("cgroup.controllers")
	if err != nil {
		return err
	}
	all := ""
	for name := range strings.FieldsSeq(controllers) {
		all += "+" + name + " "
	}
	if err := w.Cgroup.Write("cgroup.subtree_control", all); err != nil {
		return err
	}
	space, err := makeCgroup(spacePath)
	if err != nil {
		return err
	}
	// Only memory is accounted a process: it tells whose memory ran out.
	return space.Write("cgroup.subtree_control", "+memory")
}

// Limit keeps memory and pids back for the kernel and the agent.
func (w *Workload) Limit(memoryBytes, pids int64) {
	_ = w.Cgroup.Write("memory.max", fmt.Sprint(memoryBytes))
	_ = w.Cgroup.Write("pids.max", fmt.Sprint(pids))
	go func() {
		if err := w.guardMemory(); err != nil {
			console.Printf("memory is not watched: %v", err)
		}
	}()
}

// Lookup finds a user of the root drive: see Accounts.
func (w *Workload) Lookup(name string) (User, error) {
	w.lookup.Lock()
	defer w.lookup.Unlock()
	return w.accounts.Lookup(name)
}

// Join appends the step that takes a child into the workload's namespaces (but the PID namespace: see Fork).
func (w *Workload) Join(tag fork.Tag, p *fork.Program) {
	p.Call(tag, unix.SYS_SETNS, uintptr(w.initFD), unix.CLONE_NEWNS|unix.CLONE_NEWUTS|unix.CLONE_NEWCGROUP)
}

// Fork starts a program inside the workload's PID namespace, in the given cgroup.
func (w *Workload) Fork(p *fork.Program, c *Cgroup) (fork.Child, error) {
	return p.Start(fork.Options{CgroupFD: c.FD, PidNamespaceFD: w.initFD, OwnPidNamespaceFD: w.ownFD, Share: true})
}

// RunBeside runs a program in the workload's namespaces but outside the cgroup that a freeze stops, and waits for its
// end. A program that takes longer than the limit is killed, and ErrTimeout returned.
func (w *Workload) RunBeside(p *fork.Program, limit time.Duration) error {
	child, err := w.Fork(p, w.hooks)
	if err != nil {
		return err
	}
	defer unix.Close(child.Status)
	defer unix.Close(child.PidFD)
	end := time.Now().Add(limit)
	for {
		left := time.Until(end)
		poll := []unix.PollFd{{Fd: int32(child.PidFD), Events: unix.POLLIN}}
		n, _ := unix.Poll(poll, int(max(left, 0).Milliseconds())+1)
		if n > 0 {
			break
		}
		if left <= 0 {
			_ = w.hooks.Kill()
			go func() {
				_, _ = unix.Wait4(child.Pid, nil, 0, nil)
				child.Done()
			}()
			return ErrTimeout
		}
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(child.Pid, &status, 0, nil); err != nil {
		return err
	}
	child.Done()
	_ = w.hooks.Kill()
	var report fork.Report
	report.Read(child.Status)
	if report.Errno != 0 {
		return report.Errno
	}
	if status.ExitStatus() != 0 {
		return fmt.Errorf("exit status %d", status.ExitStatus())
	}
	return nil
}

// DriveBytes is the size of the root drive's device.
func (w *Workload) DriveBytes() (int64, error) {
	fd, err := unix.Open(w.drive, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return unix.Seek(fd, 0, unix.SEEK_END)
}

// WaitInit blocks until the workload's process 1 has ended.
func (w *Workload) WaitInit() {
	for {
		if _, err := unix.Wait4(w.initPid, nil, 0, nil); err != unix.EINTR {
			return
		}
	}
}
