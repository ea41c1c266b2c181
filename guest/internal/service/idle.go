package service

import (
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// idleDelay is how long no stream is open before the agent gives the memory of the last ones back to the kernel.
const idleDelay = 2 * time.Second

// idle returns memory once the last stream has ended: a quiet sandbox shall be small, and is what gets saved.
type idle struct {
	mu      sync.Mutex
	streams int
	timer   *time.Timer
}

func (i *idle) begin() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.streams++
	if i.timer != nil {
		i.timer.Stop()
	}
}

func (i *idle) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.streams--
	if i.streams > 0 {
		return
	}
	if i.timer == nil {
		i.timer = time.AfterFunc(idleDelay, giveBack)
		return
	}
	i.timer.Reset(idleDelay)
}

// giveBack collects twice: pools keep what they hold over one collection.
func giveBack() {
	runtime.GC()
	debug.FreeOSMemory()
}
