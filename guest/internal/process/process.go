// Package process is the table of the commands a node started: their start, output, stdin, signals and end.
//
//	pipe or pty ──▶ source (poller) ──▶ output (≤ 1 MiB unacknowledged) ──▶ Attachment ──▶ stream to the node
//	                                                                        Attachment ──▶ stdin (poller) ──▶ pipe
//
// P1 The exit is told after the last byte: what the pipes held when the leader ended is read first.
// P2 A process whose output is not acknowledged waits in its own write; nobody else does.
// P3 What a daemon writes after its leader's end is read and dropped, so that it gets no SIGPIPE.
package process

import (
	"sync"
	"time"

	guestv1 "space/guest/gen/guest/v1"
	"space/guest/internal/poll"
	"space/guest/internal/workload"

	"golang.org/x/sys/unix"
)

// Stream is where a byte of output came from.
type Stream = guestv1.Output_Stream

// Process is one command, from its start until the node forgets it.
type Process struct {
	// ID is the node's name for it.
	ID string
	// Pid is the leader's pid inside the workload.
	Pid         int
	StartedAtMs int64

	table   *Table
	hostPid int
	pidFD   int
	started chan struct{} // closed when the start has succeeded or failed
	failure error         // valid after started, when the start failed
	cgroup  *workload.Cgroup

	mu       sync.Mutex
	output   output
	sources  []*source
	leader   *leaderEnd // nil while the leader runs
	exit     *guestv1.Exit
	timedOut bool
	// lingering: the cgroup is kept because something outlived the leader; else it is nil after the exit.
	lingering bool
	timer     *time.Timer
	stdin     *stdin
	terminal  int // master of the pty; -1 = none
	attached  *Attachment
	watch     *poll.Watch
}

type leaderEnd struct {
	code, signal int
	outOfMemory  bool
	atMs         int64
}

// onLeaderEnd takes the leader's status as soon as its pidfd says that it ended.
func (p *Process) onLeaderEnd() {
	var status unix.WaitStatus
	pid, err := unix.Wait4(p.hostPid, &status, unix.WNOHANG, nil)
	if err == unix.EINTR || (err == nil && pid == 0) {
		return
	}
	p.watch.Close()
	unix.Close(p.pidFD)
	end := &leaderEnd{atMs: time.Now().UnixMilli()}
	if status.Signaled() {
		end.signal = int(status.Signal())
	} else {
		end.code = status.ExitStatus()
	}
	// Also a shell whose program was ended exits by itself; one that went well does not say so.
	end.outOfMemory = (end.signal != 0 || end.code != 0) && p.cgroup.OutOfMemory()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leader = end
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.stdin != nil {
		p.stdin.abandon()
	}
	for _, s := range p.sources {
		s.leaderEnded()
	}
	p.finishIfDrained()
}

// finishIfDrained tells the exit once every source has given what it held at the leader's end (P1).
func (p *Process) finishIfDrained() {
	if p.leader == nil || p.exit != nil {
		return
	}
	for _, s := range p.sources {
		if !s.drained {
			return
		}
	}
	p.exit = &guestv1.Exit{
		ExitCode: int32(p.leader.code), Signal: int32(p.leader.signal), TimedOut: p.timedOut,
		OutOfMemory: p.leader.outOfMemory, FinalOffset: p.output.end, ExitedAtUnixMs: p.leader.atMs,
	}
	if p.cgroup.Populated() {
		// A daemon lives on in it: the tree can still be killed until the process is forgotten.
		p.lingering = true
	} else {
		p.table.pool.Give(p.cgroup)
		p.cgroup = nil
	}
	p.wake()
}

// wake lets the attached stream look at what has changed.
func (p *Process) wake() {
	if p.attached != nil {
		p.attached.signal()
	}
}

// acknowledge frees what the node has recorded and lets waiting sources read again.
func (p *Process) acknowledge(offset int64) {
	p.output.acknowledge(offset)
	for _, s := range p.sources {
		s.resume()
	}
}

func (p *Process) onTimeout() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leader == nil {
		p.timedOut = true
		_ = p.cgroup.Kill()
	}
}

// Info is the process's row in the table.
func (p *Process) Info() *guestv1.ProcessInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	info := &guestv1.ProcessInfo{
		ProcessId: p.ID, Pid: int32(p.Pid), NextOffset: p.output.end, AcknowledgedOffset: p.output.acknowledged, Exit: p.exit,
	}
	if p.stdin != nil {
		info.StdinNextOffset = p.stdin.written
	}
	return info
}

// Signal sends a signal and says whether anybody got it.
func (p *Process) Signal(signal unix.Signal, scope guestv1.SignalRequest_Scope) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if scope == guestv1.SignalRequest_SCOPE_TREE {
		if p.cgroup == nil {
			return false
		}
		if signal == unix.SIGKILL {
			return p.cgroup.Kill() == nil
		}
		return p.cgroup.Signal(signal) > 0
	}
	if p.leader != nil {
		return false
	}
	if scope == guestv1.SignalRequest_SCOPE_PROCESS {
		return unix.Kill(p.hostPid, signal) == nil
	}
	return unix.Kill(-p.hostPid, signal) == nil
}

// drain reads what the pipes hold now, as far as the limit allows.
func (p *Process) drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sources {
		s.readAll()
	}
	p.finishIfDrained()
}

// release gives up the cgroup something lives on in; it is removed when that has ended.
func (p *Process) release() {
	if p.lingering {
		p.lingering = false
		p.table.pool.Give(p.cgroup)
		p.cgroup = nil
	}
}
