package process

import (
	"errors"
	"sync"
	"time"

	guestv1 "space/guest/gen/guest/v1"
	"space/guest/internal/poll"
	"space/guest/internal/workload"

	"golang.org/x/sys/unix"
)

// MaxProcesses bounds the table; a start beyond it fails with EAGAIN.
const MaxProcesses = 4096

// ErrUnknownProcess says that the table has no such process.
var ErrUnknownProcess = errors.New("no such process")

// Table holds every process that was started and not forgotten.
type Table struct {
	workload *workload.Workload
	poller   *poll.Poller
	pool     *workload.Pool
	nullFD   int
	turns    chan struct{}

	mu        sync.Mutex
	processes map[string]*Process
	frozen    bool
	starting  int
	// settled is closed when the last start in flight has ended; nil = nobody waits for that.
	settled chan struct{}
	env     map[string]string
}

// NewTable makes an empty table for the workload.
func NewTable(w *workload.Workload, poller *poll.Poller) (*Table, error) {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &Table{
		workload: w, poller: poller, pool: w.Pool, nullFD: null, turns: make(chan struct{}, maxStartsAtOnce),
		processes: map[string]*Process{},
	}, nil
}

// Find returns a process that was started.
func (t *Table) Find(id string) (*Process, error) {
	t.mu.Lock()
	p := t.processes[id]
	t.mu.Unlock()
	if p == nil {
		return nil, ErrUnknownProcess
	}
	<-p.started
	if p.failure != nil {
		return nil, ErrUnknownProcess
	}
	return p, nil
}

// Forget drops processes that have ended; others stay.
func (t *Table) Forget(ids []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		p := t.processes[id]
		if p == nil {
			continue
		}
		p.mu.Lock()
		ended := p.exit != nil
		if ended {
			p.acknowledge(p.output.end)
			p.release()
		}
		p.mu.Unlock()
		if ended {
			delete(t.processes, id)
		}
	}
}

// Info lists every process.
func (t *Table) Info() []*guestv1.ProcessInfo {
	list := make([]*guestv1.ProcessInfo, 0, 16)
	for _, p := range t.list() {
		list = append(list, p.Info())
	}
	return list
}

// Drain reads what is left in the pipes of a frozen workload.
func (t *Table) Drain() {
	for _, p := range t.list() {
		p.drain()
	}
}

// RefuseStarts refuses starts from now on, and waits for those in flight: a child must not be frozen before its execve.
func (t *Table) RefuseStarts(limit time.Duration) bool {
	t.mu.Lock()
	t.frozen = true
	if t.starting == 0 {
		t.mu.Unlock()
		return true
	}
	if t.settled == nil {
		t.settled = make(chan struct{})
	}
	settled := t.settled
	t.mu.Unlock()
	select {
	case <-settled:
		return true
	case <-time.After(limit):
		return false
	}
}

// AllowStarts ends what RefuseStarts began.
func (t *Table) AllowStarts() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.frozen = false
}

func (t *Table) endStart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.starting--
	if t.starting == 0 && t.settled != nil {
		close(t.settled)
		t.settled = nil
	}
}

// SetEnvironment gives every later start the sandbox's environment under its own.
func (t *Table) SetEnvironment(env map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.env = env
}

func (t *Table) list() []*Process {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]*Process, 0, len(t.processes))
	for _, p := range t.processes {
		select {
		case <-p.started:
			list = append(list, p)
		default:
		}
	}
	return list
}
