package boot

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"space/guest/internal/console"
	"space/guest/internal/workload"
)

const (
	// reservedBytes and reservedTasks are kept from the workload, so that the agent can work when it has used up its own.
	reservedBytes = 24 << 20
	reservedTasks = 96
	minimumBytes  = 32 << 20
)

// limitWorkload bounds the workload below what the machine has.
func limitWorkload(w *workload.Workload) {
	memory := int64(0)
	text, _ := os.ReadFile("/proc/meminfo")
	for line := range bytes.Lines(text) {
		f := strings.Fields(string(line))
		if len(f) >= 2 && f[0] == "MemAvailable:" {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			memory = kib << 10
		}
	}
	threads, _ := os.ReadFile("/proc/sys/kernel/threads-max")
	tasks, _ := strconv.ParseInt(strings.TrimSpace(string(threads)), 10, 64)
	w.Limit(max(memory-reservedBytes, minimumBytes), max(tasks-reservedTasks, reservedTasks))
}

// prepareDrive writes what a boot sets in the root drive. A drive where that fails still runs.
func prepareDrive(w *workload.Workload) {
	resolver := []byte("nameserver " + nameserver + "\n")
	if old, err := w.Root.ReadFile("etc/resolv.conf", 4096); err == nil && bytes.Equal(old, resolver) {
		return
	}
	if err := w.Root.ReplaceFile("etc/resolv.conf", resolver, 0o644); err != nil {
		console.Printf("resolv.conf: %v", err)
	}
}
