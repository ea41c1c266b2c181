package host

import (
	"fmt"
	"slices"
	"testing"
	"time"

	guestv1 "space/guest/gen/guest/v1"

	"connectrpc.com/connect"
)

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
