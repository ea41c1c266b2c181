// The agent is the first process of a microVM. It boots the guest, runs the workload beside itself in namespaces of its
// own, and answers the node over the guest channel.
package main

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"space/guest/internal/boot"
	"space/guest/internal/console"
	"space/guest/internal/link"
	"space/guest/internal/poll"
	"space/guest/internal/process"
	"space/guest/internal/service"
	"space/guest/internal/workload"
)

// build names the agent; the builder sets it with -ldflags "-X main.build=…".
var build = "0.1.0"

const (
	collectAtPercent = 50
	memoryLimitBytes = 48 << 20
	// bootTimeout is far above the slowest boot on a busy host.
	bootTimeout = 2 * time.Minute
)

func main() {
	if filepath.Base(os.Args[0]) == "modprobe" {
		os.Exit(modprobe(os.Args[1:]))
	}
	if os.Getpid() != 1 {
		console.Printf("%s: this is process 1 of a microVM and does nothing elsewhere", build)
		os.Exit(2)
	}
	debug.SetTraceback("all")
	debug.SetGCPercent(collectAtPercent)
	debug.SetMemoryLimit(memoryLimitBytes)
	// Without process 1 the kernel panics, and the VMM ends: that is what the node then sees.
	if err := run(); err != nil {
		console.Printf("fatal: %v", err)
	}
	os.Exit(1)
}

func run() error {
	// A boot that hangs shall be seen too: the goroutines go to the console, and the machine ends.
	watchdog := time.AfterFunc(bootTimeout, func() { panic("the boot took too long") })
	poller, err := poll.New()
	if err != nil {
		return err
	}
	w, err := boot.Run(poller)
	if err != nil {
		return err
	}
	table, err := process.NewTable(w, poller)
	if err != nil {
		return err
	}
	s := &service.Service{
		Build: build, Workload: w, Freezer: workload.NewFreezer(w), Table: table, PowerOff: boot.PowerOff,
	}
	s.Identify()
	go func() {
		w.WaitInit()
		console.Printf("the workload's process 1 has ended")
		s.OnInitEnd()
	}()
	prefix := link.BootPrefix
	for {
		port, err := boot.OpenChannel(poller)
		if err != nil {
			return err
		}
		watchdog.Stop()
		console.Debugf("channel is open")
		s.Link = link.New(port, prefix, s.Hello)
		err = s.Link.Serve(s.Serve)
		console.Printf("channel: %v", err)
		prefix = s.Link.Prefix()
		_ = port.Close()
	}
}
