package workload

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"space/guest/internal/console"

	"golang.org/x/sys/unix"
)

// A machine without swap whose programs use up all memory does not always run out of it: the kernel drops the pages of
// the programs themselves and reads them again, over and over, and nothing gets done for minutes. The kernel tells how
// long that holds everybody up; when it is most of the time, the largest process is given a limit it is above of, so
// that the kernel's own killer ends it, as it would have when memory had run out at once.
const (
	// stallTrigger wakes the guard when all programs waited for memory during a quarter of two seconds.
	stallTrigger = "full 500000 2000000\x00"
	stallWindow  = 2 * time.Second
	// stallsToAct are the windows in a row after which nobody waits any longer.
	stallsToAct = 3
	// fullShare of the limit must be in use: slower disks alone end nobody.
	fullShare = 0.75
)

// guardMemory watches for the workload's memory being used up without an end; it returns only when it cannot watch.
func (w *Workload) guardMemory() error {
	fd, err := unix.Open(w.Cgroup.Path+"/memory.pressure", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(stallTrigger)); err != nil {
		return err
	}
	stalls, last := 0, time.Time{}
	for {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}}
		if _, err := unix.Poll(ready, -1); err != nil && err != unix.EINTR {
			return err
		}
		if ready[0].Revents&unix.POLLERR != 0 {
			return os.ErrClosed
		}
		if ready[0].Revents&unix.POLLPRI == 0 {
			continue
		}
		now := time.Now()
		if now.Sub(last) > 2*stallWindow {
			stalls = 0
		}
		stalls, last = stalls+1, now
		if stalls >= stallsToAct && w.memoryUsedUp() {
			endLargest()
			stalls = 0
		}
	}
}

func (w *Workload) memoryUsedUp() bool {
	limit := w.Cgroup.Number("memory.max")
	return limit > 0 && float64(w.Cgroup.Number("memory.current")) >= fullShare*float64(limit)
}

// endLargest lets the kernel's killer choose in the cgroup that uses the most memory.
func endLargest() {
	paths, _ := filepath.Glob(spacePath + "/*")
	largest, most := "", int64(0)
	for _, path := range paths {
		text, _ := os.ReadFile(path + "/memory.current")
		used, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if used > most {
			largest, most = path, used
		}
	}
	if largest == "" {
		return
	}
	console.Printf("memory is used up: a process of %d MiB is ended", most>>20)
	c := Cgroup{Path: largest}
	_ = c.Write("memory.max", strconv.FormatInt(most/2, 10))
	_ = c.Write("memory.max", "max")
}
