// Package poll watches many descriptors from one goroutine, which itself rests in Go's own poller (an epoll descriptor
// can be polled): no thread and no stack for each pipe of each process.
package poll

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Events a watch can wait for; an end or an error of the descriptor always wakes it.
const (
	In       = unix.EPOLLIN
	Out      = unix.EPOLLOUT
	Priority = unix.EPOLLPRI
)

// Poller calls the handler of each watch whose descriptor is ready, one after the other.
type Poller struct {
	fd   int
	file *os.File

	mu      sync.Mutex
	next    uint32
	watches map[uint32]*Watch
}

// Watch is one descriptor with the function that takes its readiness. The function must not block.
type Watch struct {
	poller *Poller
	token  uint32
	fd     int
	events uint32
	armed  bool
	handle func()
}

// New makes a poller and starts its goroutine, which lives as long as the agent.
func New() (*Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	p := &Poller{fd: fd, file: os.NewFile(uintptr(fd), "poller"), watches: map[uint32]*Watch{}}
	raw, err := p.file.SyscallConn()
	if err != nil {
		return nil, err
	}
	go func() {
		events := make([]unix.EpollEvent, 64)
		for {
			n := 0
			err := raw.Read(func(uintptr) bool {
				got, err := unix.EpollWait(fd, events, 0)
				n = max(got, 0)
				return n > 0 || (err != nil && err != unix.EINTR)
			})
			if err != nil {
				panic("poller: " + err.Error())
			}
			for _, e := range events[:n] {
				p.mu.Lock()
				w := p.watches[uint32(e.Fd)]
				armed := w != nil && w.armed
				p.mu.Unlock()
				if armed {
					w.handle()
				}
			}
		}
	}()
	return p, nil
}

// Watch begins to watch a descriptor; it wakes as long as the descriptor is ready.
func (p *Poller) Watch(fd int, events uint32, handle func()) (*Watch, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	for p.watches[p.next] != nil {
		p.next++
	}
	w := &Watch{poller: p, token: p.next, fd: fd, events: events, handle: handle}
	p.watches[w.token] = w
	if err := w.arm(); err != nil {
		delete(p.watches, w.token)
		return nil, err
	}
	return w, nil
}

// Pause stops the waking until Resume. Both may be called at any time, also from the handler, and twice.
func (w *Watch) Pause() {
	w.poller.mu.Lock()
	defer w.poller.mu.Unlock()
	w.disarm()
}

// Resume wakes the watch again whenever its descriptor is ready.
func (w *Watch) Resume() {
	w.poller.mu.Lock()
	defer w.poller.mu.Unlock()
	if w.poller.watches[w.token] == w {
		_ = w.arm()
	}
}

// Close ends the watch. The caller closes the descriptor afterwards.
func (w *Watch) Close() {
	w.poller.mu.Lock()
	defer w.poller.mu.Unlock()
	w.disarm()
	if w.poller.watches[w.token] == w {
		delete(w.poller.watches, w.token)
	}
}

func (w *Watch) arm() error {
	if w.armed {
		return nil
	}
	e := unix.EpollEvent{Events: w.events, Fd: int32(w.token)}
	if err := unix.EpollCtl(w.poller.fd, unix.EPOLL_CTL_ADD, w.fd, &e); err != nil {
		return err
	}
	w.armed = true
	return nil
}

func (w *Watch) disarm() {
	if w.armed {
		_ = unix.EpollCtl(w.poller.fd, unix.EPOLL_CTL_DEL, w.fd, nil)
		w.armed = false
	}
}
