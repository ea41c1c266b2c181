package service

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"
	"sync"

	guestv1 "space/guest/gen/guest/v1"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
)

const protocolVersion = 1

// identity is what stays the same until a wake gives a new generation.
type identity struct {
	mu         sync.Mutex
	bootID     string
	kernel     string
	generation string
}

// Identify reads what never changes while the kernel runs.
func (s *Service) Identify() {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	s.identity.bootID, s.identity.kernel = strings.TrimSpace(string(boot)), strings.TrimSpace(string(release))
}

func (s *Service) info() *guestv1.InfoResponse {
	s.identity.mu.Lock()
	generation := s.identity.generation
	s.identity.mu.Unlock()
	return &guestv1.InfoResponse{
		ProtocolVersion: protocolVersion, AgentBuild: s.Build, BootId: s.identity.bootID, KernelRelease: s.identity.kernel,
		Processes: s.Table.Info(), Generation: generation,
	}
}

// Hello is the information an ECHO carries.
func (s *Service) Hello() []byte {
	b, _ := proto.Marshal(s.info())
	return b
}

// Info says who answers and lists the processes.
func (s *Service) Info(context.Context, *connect.Request[guestv1.InfoRequest]) (*connect.Response[guestv1.InfoResponse], error) {
	return connect.NewResponse(s.info()), nil
}

// Usage accounts the workload and the agent.
func (s *Service) Usage(context.Context, *connect.Request[guestv1.UsageRequest]) (*connect.Response[guestv1.UsageResponse], error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(s.Workload.Root.FD, &fs); err != nil {
		return nil, toConnect(err)
	}
	c := s.Workload.Cgroup
	return connect.NewResponse(&guestv1.UsageResponse{
		CpuUsec:            c.Field("cpu.stat", "usage_usec"),
		MemoryBytes:        c.Number("memory.current"),
		MemoryTotalBytes:   kibibytes("/proc/meminfo", "MemTotal:"),
		RootUsedBytes:      int64(fs.Blocks-fs.Bfree) * fs.Bsize,
		RootTotalBytes:     int64(fs.Blocks) * fs.Bsize,
		Processes:          int32(c.Number("pids.current")),
		AgentResidentBytes: kibibytes("/proc/self/status", "VmRSS:"),
		OomKills:           c.Field("memory.events", "oom_kill"),
	}), nil
}

// kibibytes returns a "Name:  123 kB" line in bytes.
func kibibytes(path, name string) int64 {
	text, _ := os.ReadFile(path)
	for line := range bytes.Lines(text) {
		f := strings.Fields(string(line))
		if len(f) >= 2 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	return 0
}
