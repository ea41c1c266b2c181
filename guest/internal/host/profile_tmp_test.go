package host

import (
	"os"
	"testing"
	"time"
)

func TestProfileThroughput(t *testing.T) {
	s := trial(t)
	c := command("sh", "-c", "touch /run/profile"); c.User = "root"
	run(t, s, c)
	time.Sleep(300 * time.Millisecond)
	for range 100 {
		r := run(t, s, command("sh", "-c", "head -c 30000000 /dev/zero; test -e /run/heap.prof || exit 3"))
		if r.Exit.ExitCode == 0 { break }
	}
	for _, n := range []string{"cpu", "heap"} {
		r := run(t, s, command("cat", "/run/"+n+".prof"))
		os.WriteFile("/tmp/guest-dev/"+n+".prof", r.Stdout, 0o644)
	}
	r := run(t, s, command("sh", "-c", "grep -i -E 'ctxt' /proc/self/status; cat /proc/interrupts; cat /proc/stat | head -3; ps aux | head -60"))
	t.Logf("%s", r.Stdout)
}
func TestProfileExec(t *testing.T) {
	s := trial(t)
	c := command("sh", "-c", "touch /run/profile"); c.User = "root"
	run(t, s, c)
	time.Sleep(300 * time.Millisecond)
	for range 10000 {
		run(t, s, command("/bin/true"))
		if time.Now().Unix()%4 != 0 { continue }
		r := run(t, s, command("test", "-e", "/run/heap.prof"))
		if r.Exit.ExitCode == 0 { break }
	}
	for _, n := range []string{"cpu", "heap"} {
		r := run(t, s, command("cat", "/run/"+n+".prof"))
		os.WriteFile("/tmp/guest-dev/x"+n+".prof", r.Stdout, 0o644)
	}
}

func TestPipeFloor(t *testing.T) {
	s := trial(t)
	for range 2 {
		for _, c := range []string{"head -c 32000000 /dev/zero | cat >/dev/null", "head -c 32000000 /dev/zero > /dev/null", "dd if=/dev/zero bs=256k count=122 2>/dev/null | dd of=/dev/null bs=256k 2>/dev/null"} {
			before := cpu()
			run(t, s, command("sh", "-c", c))
			t.Logf("%s: %.1f MB per cpu second", c, 32/(cpu()-before).Seconds())
		}
		for _, c := range []string{"head -c 32000000 /dev/zero", "dd if=/dev/zero bs=256k count=122 2>/dev/null"} {
			before := cpu()
			s.Run(t.Context(), command("sh", "-c", c), nil, true)
			t.Logf("%s: %.1f MB per cpu second", c, 32/(cpu()-before).Seconds())
		}
	}
}

func status(t *testing.T, s *Session, what string) {
	c := command("sh", "-c", "touch '/run/status?'; while test -e '/run/status?'; do sleep 0.05; done; cat /run/status")
	c.User = "root"
	r := run(t, s, c)
	t.Log(what)
	os.WriteFile("/tmp/guest-dev/smaps-"+what, r.Stdout, 0o644)
}

func TestStatus(t *testing.T) {
	s := trial(t)
	status(t, s, "start")
	for range 20 { run(t, s, command("true")) }
	status(t, s, "true")
	s.Run(t.Context(), command("sh", "-c", "head -c 32000000 /dev/zero"), nil, true)
	status(t, s, "stream")
	time.Sleep(20*time.Second)
	status(t, s, "later")
}
