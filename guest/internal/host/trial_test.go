package host

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	guestv1 "space/guest/gen/guest/v1"
	"space/guest/internal/link"

	"connectrpc.com/connect"
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
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
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

func TestTrialOutputAndExitAreExact(t *testing.T) {
	s := trial(t)
	t.Logf("%v", s.Hello)
	for _, c := range []struct {
		script, stdout, stderr string
		code                   int32
	}{
		{`printf 'a\n\nb\r\n\0\377'`, "a\n\nb\r\n\x00\xff", "", 0},
		{`echo out; echo err >&2; exit 7`, "out\n", "err\n", 7},
		{`cat; pwd; id -un; id -Gn; hostname; echo $PATH $HOME $USER $SHELL $LOGNAME`, "/home/user\nuser\nuser\nspace\n/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /home/user user /bin/bash user\n", "", 0},
		{`cat /proc/1/comm; ls /proc | grep -c '^[0-9]'; cat /proc/self/cgroup | cut -c1-11; umask`, "init\n", "", 0},
		{`ls -l /dev; mount; ls /lib/modules; cat /proc/1/status | grep -i -E 'rss|vmsize|cap|sigblk'; cat /etc/resolv.conf; ip addr; ip route; free -m; cat /sys/fs/cgroup/cgroup.controllers; ulimit -a; sudo id`, "", "", 0},
	} {
		r := run(t, s, command("sh", "-c", c.script))
		t.Logf("%s -> %q %q %v", c.script, r.Stdout, r.Stderr, r.Exit)
	}
	u, err := s.Client.Usage(t.Context(), connect.NewRequest(&guestv1.UsageRequest{}))
	t.Log(u.Msg, err)
}

func TestTrialRoundTrip(t *testing.T) {
	s := trial(t)
	var calls, execs []time.Duration
	before := cpu()
	for range 60 {
		at := time.Now()
		if _, err := s.Client.SetClock(t.Context(), connect.NewRequest(&guestv1.SetClockRequest{UnixNs: time.Now().UnixNano()})); err != nil {
			t.Fatal(err)
		}
		calls = append(calls, time.Since(at))
	}
	t.Logf("a call: %v of processor time", (cpu()-before)/60)
	before = cpu()
	for range 30 {
		at := time.Now()
		r := run(t, s, command("/bin/true"))
		if r.Exit == nil || r.Exit.ExitCode != 0 {
			t.Fatal(r)
		}
		execs = append(execs, time.Since(at))
	}
	t.Logf("an exec: %v of processor time", (cpu()-before)/30)
	slices.Sort(calls)
	slices.Sort(execs)
	t.Logf("call p50 %v p95 %v; exec p50 %v p95 %v", calls[30], calls[57], execs[15], execs[28])
}

func TestTrialThroughput(t *testing.T) {
	s := trial(t)
	for _, size := range []int{1 << 20, 32 << 20} {
		at, before := time.Now(), cpu()
		r, err := s.Run(t.Context(), command("sh", "-c", fmt.Sprintf("head -c %d /dev/zero", size)), nil, true)
		if err != nil || r.Bytes != int64(size) {
			t.Fatal(r, err)
		}
		t.Logf("%d bytes: %.1f MB/s; %.1f MB a second of processor time", size,
			float64(size)/1e6/time.Since(at).Seconds(), float64(size)/1e6/(cpu()-before).Seconds())
	}
	u, _ := s.Client.Usage(t.Context(), connect.NewRequest(&guestv1.UsageRequest{}))
	t.Log(u.Msg)
	_ = strings.TrimSpace
}

func TestTrialFloor(t *testing.T) {
	s := trial(t)
	before := cpu()
	r := run(t, s, command("dash", "-c", "i=0; while [ $i -lt 40 ]; do /bin/true; i=$((i+1)); done; cat /proc/self/status | grep ctxt; uname -a >/dev/null"))
	t.Logf("fork and exec by dash: %v of processor time %q", (cpu()-before)/40, r.Stdout)
	before = cpu()
	r = run(t, s, command("dash", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; cat /proc/loadavg"))
	t.Logf("a turn of a dash loop: %v of processor time", (cpu()-before)/20000)
	before = cpu()
	time.Sleep(3 * time.Second)
	t.Logf("idle: %v in 3 s", cpu()-before)
}
