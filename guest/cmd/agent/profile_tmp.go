package main

import (
	"fmt"
	"runtime"
	"os"
	"runtime/pprof"
	"time"
)

func init() {
	if os.Getpid() != 1 { return }
	go func() {
		for {
			time.Sleep(200 * time.Millisecond)
			if _, err := os.Stat("/workload-run/status?"); err == nil {
				b, _ := os.ReadFile("/proc/self/status")
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				b = append(b, fmt.Sprintf("heapinuse %d idle %d released %d stack %d msys %d gcsys %d other %d numgc %d\n", m.HeapInuse, m.HeapIdle, m.HeapReleased, m.StackInuse, m.MSpanSys+m.MCacheSys, m.GCSys, m.OtherSys, m.NumGC)...)
				sm, _ := os.ReadFile("/proc/self/smaps")
				b = append(b, sm...)
				os.WriteFile("/workload-run/status", b, 0o644)
				os.Remove("/workload-run/status?")
			}
			if _, err := os.Stat("/workload-run/profile"); err == nil {
				f, _ := os.Create("/workload-run/cpu.prof")
				_ = pprof.StartCPUProfile(f)
				time.Sleep(12 * time.Second)
				pprof.StopCPUProfile()
				f.Close()
				h, _ := os.Create("/workload-run/heap.prof")
				pprof.WriteHeapProfile(h)
				h.Close()
				os.Remove("/workload-run/profile")
			}
		}
	}()
}
