package workload

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"space/guest/internal/poll"

	"golang.org/x/sys/unix"
)

const (
	// readyCgroups are made ahead, and so many at most are kept for use again: making one costs as much as a fork.
	readyCgroups = 4
	keptCgroups  = 32
	// maxRemovals bounds the queue of cgroups to be removed; beyond it the sender waits.
	maxRemovals = 256
	// aside lets what a start or an exit has to do go before the pool's own work.
	aside = 2 * time.Millisecond
)

// Pool has the cgroups of processes ready. A cgroup whose processes have ended serves again, unless somebody in the
// workload wrote into it meanwhile: one inotify descriptor tells that.
type Pool struct {
	poller  *poll.Poller
	removal chan *Cgroup
	notify  int

	mu      sync.Mutex
	next    int
	ready   []*Cgroup
	watched map[int]*Cgroup
}

func newPool(poller *poll.Poller) (*Pool, error) {
	notify, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	p := &Pool{poller: poller, removal: make(chan *Cgroup, maxRemovals), notify: notify, watched: map[int]*Cgroup{}}
	go p.removeAll()
	for range readyCgroups {
		c, err := p.make()
		if err != nil {
			return nil, err
		}
		p.ready = append(p.ready, c)
	}
	return p, nil
}

// Take returns an empty cgroup.
func (p *Pool) Take() (*Cgroup, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readEvents()
	for len(p.ready) > 0 {
		last := len(p.ready) - 1
		c := p.ready[last]
		p.ready = p.ready[:last]
		if !c.tainted {
			c.oomBefore = c.Field("memory.events", "oom_kill")
			return c, nil
		}
		go p.discard(c)
	}
	return p.make()
}

// Give takes a cgroup back whose leader has ended. The caller may still ask it, but starts nothing in it.
func (p *Pool) Give(c *Cgroup) {
	if c.Populated() {
		go p.discard(c)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readEvents()
	if c.tainted || len(p.ready) >= keptCgroups {
		go p.discard(c)
		return
	}
	p.ready = append(p.ready, c)
}

func (p *Pool) make() (*Cgroup, error) {
	p.next++
	c, err := makeCgroup(spacePath + "/p" + strconv.Itoa(p.next))
	if err != nil {
		return nil, err
	}
	c.watch, err = unix.InotifyAddWatch(p.notify, c.Path, unix.IN_MODIFY|unix.IN_CREATE|unix.IN_ATTRIB|unix.IN_DELETE)
	if err != nil {
		c.watch, c.tainted = -1, true
		return c, nil
	}
	p.watched[c.watch] = c
	return c, nil
}

// readEvents marks the cgroups somebody wrote into.
func (p *Pool) readEvents() {
	var buffer [4096]byte
	for {
		n, err := unix.Read(p.notify, buffer[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		for at := 0; at+unix.SizeofInotifyEvent <= n; {
			watch := int(int32(binary.NativeEndian.Uint32(buffer[at:])))
			size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(buffer[at+12:]))
			name := string(bytes.TrimRight(buffer[at+unix.SizeofInotifyEvent:at+size], "\x00"))
			if mask := binary.NativeEndian.Uint32(buffer[at+4:]); mask&unix.IN_Q_OVERFLOW != 0 {
				for _, c := range p.watched {
					c.tainted = true
				}
			}
			if c := p.watched[watch]; c != nil && !told(name) {
				c.tainted = true
			}
			at += size
		}
	}
}

// told says that the kernel itself changes the file, to tell something.
func told(name string) bool {
	return strings.HasSuffix(name, ".events") || strings.HasSuffix(name, ".events.local")
}

func (p *Pool) discard(c *Cgroup) {
	p.mu.Lock()
	if c.watch >= 0 {
		delete(p.watched, c.watch)
		_, _ = unix.InotifyRmWatch(p.notify, uint32(c.watch))
		c.watch = -1
	}
	p.mu.Unlock()
	p.removal <- c
}

func (p *Pool) removeAll() {
	for c := range p.removal {
		time.Sleep(aside)
		p.remove(c)
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
	var ready sync.Mutex
	ready.Lock()
	w, err = p.poller.Watch(fd, poll.Priority, func() {
		ready.Lock()
		defer ready.Unlock()
		var text [256]byte
		if n, err := unix.Pread(fd, text[:], 0); err != nil || field(string(text[:n]), "populated") == 0 {
			w.Close()
			unix.Close(fd)
			go p.discard(c)
		}
	})
	ready.Unlock()
	if err != nil {
		unix.Close(fd)
	}
}
