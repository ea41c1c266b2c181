package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	guestv1 "space/guest/gen/guest/v1"

	"connectrpc.com/connect"
)

func TestTrialOutputAndExitAreExact(t *testing.T) {
	s := trial(t)
	long := strings.Repeat("x", 10<<20)
	var seq bytes.Buffer
	for i := 1; i <= 200000; i++ {
		fmt.Fprintln(&seq, i)
	}
	for _, c := range []struct {
		script, stdout, stderr string
		code, signal           int32
	}{
		{`printf 'a\n\nb\r\n\0\377'`, "a\n\nb\r\n\x00\xff", "", 0, 0},
		{`echo out; echo err >&2; exit 7`, "out\n", "err\n", 7, 0},
		{`seq 1 200000; exit 7`, seq.String(), "", 7, 0},
		{`head -c 10485760 /dev/zero | tr '\0' x`, long, "", 0, 0},
		{`cat; readlink /proc/self/fd/0`, "/dev/null\n", "", 0, 0},
		{`kill -9 $$`, "", "", 0, 9},
		{`kill -SEGV $$`, "", "", 0, 11},
		{`pwd; id -un; id -Gn; echo $PATH $HOME $USER $SHELL $LOGNAME; umask`, "/home/user\nuser\nuser\n/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /home/user user /bin/bash user\n0022\n", "", 0, 0},
		{`cat /proc/1/comm; cut -d/ -f1-2 /proc/self/cgroup; ls /proc/self/fd | tr '\n' ' '`, "init\n0::/space\n0 1 2 3 ", "", 0, 0},
		{`cat /proc/self/status | grep -E 'Sig(Blk|Ign|Cgt)' | cut -f2 | tr '\n' ' '; echo; ls /lib/modules/$(uname -r) | head -1; df /dev/shm | tail -1 | cut -d' ' -f1; test -e /dev/vport2p1 || echo none`, "0000000000000000 0000000000000000 0000000000000000 \nkernel\ntmpfs\nnone\n", "", 0, 0},
		{`sudo -n id -u; sudo -n sh -c 'kill -9 -1 1'; echo survived`, "0\n", "", 0, 9},
	} {
		r := run(t, s, command("sh", "-c", c.script))
		if r.Exit == nil || string(r.Stdout) != c.stdout || string(r.Stderr) != c.stderr || r.Exit.ExitCode != c.code || r.Exit.Signal != c.signal {
			t.Errorf("%s: %.300q %.300q %v %v", c.script, r.Stdout, r.Stderr, r.Exit, r.Failed)
		}
	}
	for i := range 30 {
		r := run(t, s, command("printf", "%s", "last words"))
		if string(r.Stdout) != "last words" {
			t.Fatalf("%d: %q", i, r.Stdout)
		}
	}
}

func TestTrialStartFailuresAreTyped(t *testing.T) {
	s := trial(t)
	setup := command("sh", "-c", `cd /tmp; printf '#!/no/such\n' >badinterp; printf 'x' >noexec; printf '\1\2' >format; chmod +x badinterp format; mkdir -p secret; chmod 700 secret; rm -f f; mkfifo f || true; chmod 777 f`)
	setup.User = "root"
	if r := run(t, s, setup); r.Exit.ExitCode != 0 {
		t.Fatalf("%s", r.Stderr)
	}
	const (
		notFound = guestv1.StartFailed_REASON_PROGRAM_NOT_FOUND
		notExec  = guestv1.StartFailed_REASON_PROGRAM_NOT_EXECUTABLE
		badCwd   = guestv1.StartFailed_REASON_BAD_CWD
	)
	for _, c := range []struct {
		start  *guestv1.Start
		reason guestv1.StartFailed_Reason
		errno  string
	}{
		{&guestv1.Start{Argv: []string{"nope"}}, notFound, "ENOENT"},
		{&guestv1.Start{Argv: []string{"/no/such"}}, notFound, "ENOENT"},
		{&guestv1.Start{Argv: []string{"/etc/passwd/x"}}, notFound, "ENOENT"},
		{&guestv1.Start{Argv: []string{"/tmp/noexec"}}, notExec, "EACCES"},
		{&guestv1.Start{Argv: []string{"/tmp"}}, notExec, "EACCES"},
		{&guestv1.Start{Argv: []string{"/tmp/f"}}, notExec, "EACCES"},
		{&guestv1.Start{Argv: []string{"/tmp/format"}}, notExec, "ENOEXEC"},
		{&guestv1.Start{Argv: []string{"/tmp/badinterp"}}, guestv1.StartFailed_REASON_BAD_INTERPRETER, "ENOENT"},
		{&guestv1.Start{Argv: []string{"true"}, Cwd: "/nope"}, badCwd, "ENOENT"},
		{&guestv1.Start{Argv: []string{"true"}, Cwd: "/etc/passwd"}, badCwd, "ENOTDIR"},
		{&guestv1.Start{Argv: []string{"true"}, Cwd: "/tmp/secret"}, badCwd, "EACCES"},
		{&guestv1.Start{Argv: []string{"true"}, User: "nobody-here"}, guestv1.StartFailed_REASON_UNKNOWN_USER, "ENOENT"},
		{&guestv1.Start{Argv: []string{"true", strings.Repeat("x", 200000)}}, guestv1.StartFailed_REASON_ARGUMENTS_TOO_LONG, "E2BIG"},
	} {
		id := command("x").ProcessId
		c.start.ProcessId = id
		r := run(t, s, c.start)
		if r.Failed == nil || r.Failed.Reason != c.reason || r.Failed.Errno != c.errno {
			t.Errorf("%.60v: %v %v", c.start.Argv, r.Failed, r.Exit)
		}
	}
	for user, want := range map[string]string{"root": "0 0", "1000": "1000 1000", "4000:5000": "4000 5000", "user": "1000 1000"} {
		c := command("sh", "-c", "echo $(id -u) $(id -g)")
		c.User, c.Cwd, c.Env = user, "/", map[string]string{"A": "b"}
		if r := run(t, s, c); strings.TrimSpace(string(r.Stdout)) != want {
			t.Errorf("%s: %q", user, r.Stdout)
		}
	}
}

func TestTrialStdinAndTerminal(t *testing.T) {
	s := trial(t)
	data := bytes.Repeat([]byte("0123456789abcdef"), 50000)
	c := command("cat")
	c.StdinPipe = true
	r, err := s.Run(t.Context(), c, data, false)
	if err != nil || !bytes.Equal(r.Stdout, data) {
		t.Errorf("cat: %v, %d bytes", err, len(r.Stdout))
	}
	c = command("sh", "-c", "exec <&-; sleep 0.3; exit 3")
	c.StdinPipe = true
	if r, err := s.Run(t.Context(), c, data, false); err != nil || r.Exit.ExitCode != 3 {
		t.Errorf("closed stdin: %v %v", r, err)
	}
	c = command("sh", "-c", "stty size; tty; seq 1 20000; exit 7")
	c.Pty = &guestv1.PtySize{Cols: 91, Rows: 17}
	r = run(t, s, c)
	if !bytes.HasPrefix(r.Pty, []byte("17 91\r\n/dev/pts/")) || !bytes.HasSuffix(r.Pty, []byte("\r\n19999\r\n20000\r\n")) || r.Exit.ExitCode != 7 {
		t.Errorf("pty: %.60q … %v", r.Pty, r.Exit)
	}
}

func TestTrialTreeEndsAndNothingStays(t *testing.T) {
	s := trial(t)
	start := func(c *guestv1.Start) *Stream {
		stream := s.Client.Attach(t.Context())
		if err := stream.Send(&guestv1.AttachRequest{Kind: &guestv1.AttachRequest_Start{Start: c}}); err != nil {
			t.Fatal(err)
		}
		if m, err := stream.Receive(); err != nil || m.GetStarted() == nil {
			t.Fatal(m, err)
		}
		return stream
	}
	c := command("sh", "-c", "(sleep 999 & sleep 999) & wait")
	stream := start(c)
	time.Sleep(300 * time.Millisecond)
	answer, err := s.Client.Signal(t.Context(), connect.NewRequest(&guestv1.SignalRequest{ProcessId: c.ProcessId, Signal: 9, Scope: guestv1.SignalRequest_SCOPE_TREE}))
	if err != nil || !answer.Msg.Delivered {
		t.Error(answer, err)
	}
	r := &Result{}
	if err := s.Follow(stream, r, false); err != nil || r.Exit.Signal != 9 || r.Exit.OutOfMemory || r.Exit.TimedOut {
		t.Error(r, err)
	}
	c = command("sh", "-c", "trap 'echo term; exit 5' TERM; echo ready; while :; do sleep 0.05; done")
	stream = start(c)
	r = &Result{Bytes: 0}
	if m, err := stream.Receive(); err != nil || string(m.GetOutput().GetData()) != "ready\n" {
		t.Error(m, err)
	}
	r.Bytes = 6
	_, _ = s.Client.Signal(t.Context(), connect.NewRequest(&guestv1.SignalRequest{ProcessId: c.ProcessId, Signal: 15}))
	if err := s.Follow(stream, r, false); err != nil || r.Exit.ExitCode != 5 || string(r.Stdout) != "term\n" {
		t.Error(r, err)
	}
	c = command("sh", "-c", "sleep 30")
	c.TimeoutMs = 200
	if r := run(t, s, c); !r.Exit.TimedOut || r.Exit.Signal != 9 {
		t.Error("timeout", r.Exit)
	}
	// A daemon that keeps the pipe: the exit is told at once, and it gets no SIGPIPE.
	at := time.Now()
	c = command("sh", "-c", "(for i in 1 2 3 4 5 6 7 8 9 10; do echo daemon; sleep 0.1; done; touch /tmp/alive) & echo hi")
	if r := run(t, s, c); !bytes.HasPrefix(r.Stdout, []byte("hi\n")) && !bytes.HasPrefix(r.Stdout, []byte("daemon\nhi\n")) {
		t.Errorf("daemon: %q", r.Stdout)
	}
	t.Logf("daemon's parent: %v", time.Since(at))
	time.Sleep(3 * time.Second)
	if r := run(t, s, command("sh", "-c", "rm /tmp/alive; ps -eo stat,args --no-headers | grep -v ps | wc -l; ls -d /sys/fs/cgroup/space/p* | wc -l; ps -eo stat,args")); r.Exit.ExitCode != 0 {
		t.Errorf("daemon died: %q %q", r.Stdout, r.Stderr)
	} else {
		t.Logf("%s", r.Stdout)
	}
}

func TestTrialThousandProcessesLeaveNoZombie(t *testing.T) {
	s := trial(t)
	var wait sync.WaitGroup
	var failed sync.Map
	at := time.Now()
	for i := range 1000 {
		wait.Go(func() {
			r, err := s.Run(t.Context(), command("true"), nil, false)
			if err != nil || r.Exit == nil || r.Exit.ExitCode != 0 {
				failed.Store(i, fmt.Sprint(r, err))
			}
		})
	}
	wait.Wait()
	n := 0
	failed.Range(func(k, v any) bool { n++; t.Log(v); return n < 5 })
	if n > 0 {
		t.Error("some failed")
	}
	t.Logf("%v", time.Since(at))
	var ids []string
	info, err := s.Client.Info(t.Context(), connect.NewRequest(&guestv1.InfoRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range info.Msg.Processes {
		if p.Exit != nil {
			ids = append(ids, p.ProcessId)
		}
	}
	if _, err := s.Client.Forget(t.Context(), connect.NewRequest(&guestv1.ForgetRequest{ProcessIds: ids})); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * time.Second)
	u, _ := s.Client.Usage(t.Context(), connect.NewRequest(&guestv1.UsageRequest{}))
	t.Log(len(ids), u.Msg)
	r := run(t, s, command("sh", "-c", "ps -eo stat --no-headers | grep -c Z; ls -d /sys/fs/cgroup/space/p* | wc -l"))
	t.Logf("%s", r.Stdout)
	if !bytes.HasPrefix(r.Stdout, []byte("0\n")) {
		t.Error("zombies")
	}
}

func TestTrialStalledOutputWaitsAndIsJoined(t *testing.T) {
	s := trial(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := command("sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' a; echo end >&2")
	stream := s.Client.Attach(ctx)
	_ = stream.Send(&guestv1.AttachRequest{Kind: &guestv1.AttachRequest_Start{Start: c}})
	total := int64(0)
	for total < 1<<20 {
		m, err := stream.Receive()
		if err != nil {
			t.Fatal(err)
		}
		total += int64(len(m.GetOutput().GetData()))
	}
	time.Sleep(300 * time.Millisecond)
	info, _ := s.Client.Info(t.Context(), connect.NewRequest(&guestv1.InfoRequest{}))
	for _, p := range info.Msg.Processes {
		if p.ProcessId == c.ProcessId && (p.NextOffset != 1<<20 || p.AcknowledgedOffset != 0) {
			t.Error("unacknowledged output is not bounded", p)
		}
	}
	second := s.Client.Attach(t.Context())
	_ = second.Send(&guestv1.AttachRequest{Kind: &guestv1.AttachRequest_Join{Join: &guestv1.Join{ProcessId: c.ProcessId, FromOffset: 500000}}})
	r := &Result{}
	if err := s.Follow(second, r, false); err != nil || len(r.Stdout) != 2500000 || string(r.Stderr) != "end\n" || r.Exit.FinalOffset != 3000004 {
		t.Error(len(r.Stdout), r.Exit, err)
	}
	if _, err := stream.Receive(); connect.CodeOf(err) != connect.CodeAborted {
		t.Error("the first stream goes on", err)
	}
	cancel()
	third := s.Client.Attach(t.Context())
	_ = third.Send(&guestv1.AttachRequest{Kind: &guestv1.AttachRequest_Start{Start: c}})
	r = &Result{}
	if err := s.Follow(third, r, false); err != nil || r.Bytes != 3000004 || r.Exit == nil {
		t.Error(r, err)
	}
	none := s.Client.Attach(t.Context())
	_ = none.Send(&guestv1.AttachRequest{Kind: &guestv1.AttachRequest_Join{Join: &guestv1.Join{ProcessId: "prcnone"}}})
	if _, err := none.Receive(); connect.CodeOf(err) != connect.CodeNotFound && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestTrialOutOfMemoryIsToldApart(t *testing.T) {
	s := trial(t)
	const hog = `python3 -c 'l = []
while True: l.append(bytearray(1 << 22))'`
	at := time.Now()
	c := command("sh", "-c", "exec "+hog)
	if r := run(t, s, c); !r.Exit.OutOfMemory || r.Exit.Signal != 9 {
		t.Error("oom", r.Exit, string(r.Stderr))
	}
	t.Logf("the leader: %v", time.Since(at))
	c = command("sh", "-c", hog+"; exit 4")
	if r := run(t, s, c); !r.Exit.OutOfMemory || r.Exit.ExitCode != 4 {
		t.Error("oom of a child", r.Exit, string(r.Stderr))
	}
	t.Logf("a child: %v", time.Since(at))
	// A cgroup that somebody wrote into is not used again.
	c = command("sh", "-c", "echo 24M > /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/memory.max")
	c.User = "root"
	if r := run(t, s, c); r.Exit.ExitCode != 0 {
		t.Errorf("%s", r.Stderr)
	}
	for range 6 {
		c = command("sh", "-c", "cat /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/memory.max; kill -9 $$")
		if r := run(t, s, c); r.Exit.OutOfMemory || r.Exit.Signal != 9 || string(r.Stdout) != "max\n" {
			t.Error("killed, not out of memory", r.Exit, string(r.Stdout))
		}
	}
}

func TestTrialTheKernelFindsItsModules(t *testing.T) {
	s := trial(t)
	c := command("sh", "-c", `python3 -c 'import os; os.open("/dev/net/tun", os.O_RDWR)' && python3 -c 'import os; os.open("/dev/fuse", os.O_RDWR)' && cut -d" " -f1 /proc/modules | grep -E '^(tun|fuse)$' | sort | tr '\n' ' '`)
	c.User = "root"
	if r := run(t, s, c); string(r.Stdout) != "fuse tun " {
		t.Errorf("%q %q", r.Stdout, r.Stderr)
	}
}
