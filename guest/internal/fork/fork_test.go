package fork

import (
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func start(t *testing.T, p *Program, share bool) Child {
	t.Helper()
	c, err := p.Start(Options{CgroupFD: -1, PidNamespaceFD: -1, Share: share})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(c.Status); unix.Close(c.PidFD) })
	return c
}

func wait(t *testing.T, c Child) unix.WaitStatus {
	t.Helper()
	var status unix.WaitStatus
	if _, err := unix.Wait4(c.Pid, &status, 0, nil); err != nil {
		t.Fatal(err)
	}
	c.Done()
	return status
}

func TestChildExecutesTheFirstCandidateThere(t *testing.T) {
	for _, share := range []bool{true, false} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p := &Program{}
		p.Call(1, unix.SYS_DUP2, w.Fd(), 1)
		p.CloseOthers()
		p.Exec(2, []string{"/nowhere/sh", "/bin/sh"}, []string{"sh", "-c", "echo $A; exit 5"}, []string{"A=b"})
		c := start(t, p, share)
		w.Close()
		report, done := c.Wait(5 * time.Second)
		if !done || report.Errno != 0 || report.Pid != c.Pid {
			t.Fatal(report, done)
		}
		out, _ := io.ReadAll(r)
		if status := wait(t, c); string(out) != "b\n" || status.ExitStatus() != 5 {
			t.Errorf("share %v: %q %v", share, out, status)
		}
	}
}

func TestChildReportsTheStepThatFailed(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(folder+"/script", []byte("#!/no/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		build       func(*Program)
		tag         Tag
		errno       unix.Errno
		interpreter bool
	}{
		{func(p *Program) { p.Call(7, unix.SYS_CHDIR, p.String("/nowhere")) }, 7, unix.ENOENT, false},
		{func(p *Program) { p.Exec(8, []string{"/nowhere/x", folder}, []string{"x"}, nil) }, 8, unix.EACCES, false},
		{func(p *Program) { p.Exec(8, []string{"/nowhere/x"}, []string{"x"}, nil) }, 8, unix.ENOENT, false},
		{func(p *Program) { p.Exec(8, []string{folder + "/script", "/bin/true"}, []string{"x"}, nil) }, 8, unix.ENOENT, true},
	} {
		p := &Program{}
		p.Try(unix.SYS_CHDIR, p.String("/nowhere"))
		c.build(p)
		child := start(t, p, true)
		report, done := child.Wait(5 * time.Second)
		wait(t, child)
		if !done || report.Failed != c.tag || report.Errno != c.errno || report.MissingInterpreter != c.interpreter {
			t.Errorf("%+v", report)
		}
	}
}

// The shared child runs while this program allocates, collects and grows stacks: neither disturbs the other.
func TestManyChildrenBesideABusyCollector(t *testing.T) {
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = strings.Repeat("x", 1<<16)
				runtime.GC()
			}
		}
	}()
	defer close(stop)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 25 {
				p := &Program{}
				p.Call(1, unix.SYS_SETSID)
				p.Exec(2, []string{"/bin/true"}, []string{"true"}, []string{"A=" + strings.Repeat("b", 10000)})
				c := start(t, p, true)
				report, done := c.Wait(20 * time.Second)
				if status := wait(t, c); !done || report.Errno != 0 || status.ExitStatus() != 0 {
					t.Error(report, done, status)
				}
			}
		})
	}
	group.Wait()
}
