package host

import (
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	guestv1 "space/guest/gen/guest/v1"
	"space/guest/internal/link"
)

// The tests of this file drive an agent in a real microVM whose channel is the Unix socket SPACE_TRIAL_SOCKET.
func trial(t *testing.T) *Session {
	t.Helper()
	path := os.Getenv("SPACE_TRIAL_SOCKET")
	if path == "" {
		t.Skip("SPACE_TRIAL_SOCKET is not set")
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Second)
	defer cancel()
	s, err := Open(ctx, conn, link.BootPrefix)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// cpu is the processor time the VMM has used: the measure that does not depend on who else uses the host.
func cpu() time.Duration {
	text, err := os.ReadFile("/proc/" + os.Getenv("SPACE_TRIAL_PID") + "/stat")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(text))
	user, _ := strconv.Atoi(f[13])
	system, _ := strconv.Atoi(f[14])
	return time.Duration(user+system) * 10 * time.Millisecond
}

var nextID atomic.Int64

func command(argv ...string) *guestv1.Start {
	return &guestv1.Start{ProcessId: "prc" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(nextID.Add(1), 10), Argv: argv}
}

func run(t *testing.T, s *Session, start *guestv1.Start) *Result {
	t.Helper()
	r, err := s.Run(t.Context(), start, nil, false)
	if err != nil {
		t.Fatalf("%v: %v", start.Argv, err)
	}
	return r
}
