package workload

import (
	"strconv"
	"sync/atomic"
	"time"

	"space/guest/internal/poll"

	"golang.org/x/sys/unix"
)

const (
	// readyCgroups are made ahead, so that a start does not wait for one.
	readyCgroups = 4
	// maxRemovals bounds the queue of cgroups to be removed; beyond it the sender waits.
	maxRemovals = 256
)

// Pool makes and removes the cgroups of processes beside the path of a start.
type Pool struct {
	poller  *poll.Poller
	ready   chan *Cgroup
	refill  chan struct{}
	removal chan *Cgroup
	next    atomic.Int64
}

func newPool(poller *poll.Poller) *Pool {
	p := &Pool{
		poller: poller, ready: make(chan *Cgroup, readyCgroups), refill: make(chan struct{}, 1),
		removal: make(chan *Cgroup, maxRemovals),
	}
	go p.work()
	p.refill <- struct{}{}
	return p
}

// Take returns an empty cgroup.
func (p *Pool) Take() (*Cgroup, error) {
	select {
	case c := <-p.ready:
		return c, nil
	default:
		return p.make()
	}
}

// Give removes a cgroup as soon as it is empty. The caller does not use it afterwards.
func (p *Pool) Give(c *Cgroup) { p.removal <- c }

func (p *Pool) make() (*Cgroup, error) {
	return makeCgroup(spacePath + "/p" + strconv.FormatInt(p.next.Add(1), 10))
}

// work waits a little before it makes or removes anything: what the start it follows has to do goes first.
func (p *Pool) work() {
	for {
		select {
		case c := <-p.removal:
			time.Sleep(time.Millisecond)
			p.remove(c)
		case <-p.refill:
			time.Sleep(time.Millisecond)
		}
		for len(p.ready) < readyCgroups && len(p.removal) == 0 {
			c, err := p.make()
			if err != nil {
				break
			}
			p.ready <- c
		}
	}
}

// remove deletes the cgroup now, or when its last process ends: a daemon may outlive the process that started it.
func (p *Pool) remove(c *Cgroup) {
	if c.Remove() == nil {
		return
	}
	fd, err := unix.Open(c.Path+"/cgroup.events", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	var w *poll.Watch
	gone := func() {
		w.Close()
		unix.Close(fd)
		go p.Give(c)
	}
	check := func() {
		var text [256]byte
		if n, err := unix.Pread(fd, text[:], 0); err != nil || field(string(text[:n]), "populated") == 0 {
			gone()
		}
	}
	ready := make(chan struct{})
	w, err = p.poller.Watch(fd, poll.Priority, func() { <-ready; check() })
	if err != nil {
		unix.Close(fd)
		return
	}
	close(ready)
}
