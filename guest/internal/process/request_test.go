package process

import (
	"errors"
	"slices"
	"strings"
	"testing"

	guestv1 "space/guest/gen/guest/v1"
	"space/guest/internal/fork"
	"space/guest/internal/workload"

	"golang.org/x/sys/unix"
)

func TestStartRefusesWhatCannotBeAProcess(t *testing.T) {
	good := func() *guestv1.Start { return &guestv1.Start{ProcessId: "prc1", Argv: []string{"true"}} }
	if err := check(good()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*guestv1.Start){
		"no id":      func(s *guestv1.Start) { s.ProcessId = "" },
		"long id":    func(s *guestv1.Start) { s.ProcessId = strings.Repeat("x", maxIDBytes+1) },
		"no argv":    func(s *guestv1.Start) { s.Argv = nil },
		"no program": func(s *guestv1.Start) { s.Argv = []string{""} },
		"many args":  func(s *guestv1.Start) { s.Argv = make([]string, maxArguments+1); s.Argv[0] = "x" },
		"NUL":        func(s *guestv1.Start) { s.Argv = []string{"a", "b\x00"} },
		"NUL in cwd": func(s *guestv1.Start) { s.Cwd = "/\x00" },
		"env name":   func(s *guestv1.Start) { s.Env = map[string]string{"A=B": ""} },
		"env NUL":    func(s *guestv1.Start) { s.Env = map[string]string{"A": "\x00"} },
		"timeout":    func(s *guestv1.Start) { s.TimeoutMs = -1 },
		"pty":        func(s *guestv1.Start) { s.Pty = &guestv1.PtySize{Cols: 1 << 16} },
	} {
		s := good()
		spoil(s)
		var invalid *InvalidStart
		if err := check(s); !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEnvironmentLayers(t *testing.T) {
	user := workload.User{Name: "u", Home: "/h", Shell: "/bin/sh"}
	env := environment(user, map[string]string{"A": "sandbox", "B": "sandbox"}, map[string]string{"B": "request", "HOME": "/x"})
	for name, want := range map[string]string{"A": "sandbox", "B": "request", "HOME": "/x", "USER": "u", "PATH": workload.DefaultPath} {
		if env[name] != want {
			t.Errorf("%s=%s", name, env[name])
		}
	}
}

func TestCandidatesFollowThePath(t *testing.T) {
	if got := candidates("p", "/a::/b"); !slices.Equal(got, []string{"/a/p", "./p", "/b/p"}) {
		t.Error(got)
	}
	if got := candidates("./p", "/a"); !slices.Equal(got, []string{"./p"}) {
		t.Error(got)
	}
}

func TestFailuresHaveTheirReasonAndErrno(t *testing.T) {
	for _, c := range []struct {
		report fork.Report
		reason guestv1.StartFailed_Reason
		errno  string
	}{
		{fork.Report{Failed: tagExec, Errno: unix.ENOENT}, guestv1.StartFailed_REASON_PROGRAM_NOT_FOUND, "ENOENT"},
		{fork.Report{Failed: tagExec, Errno: unix.ENOENT, MissingInterpreter: true}, guestv1.StartFailed_REASON_BAD_INTERPRETER, "ENOENT"},
		{fork.Report{Failed: tagExec, Errno: unix.EACCES}, guestv1.StartFailed_REASON_PROGRAM_NOT_EXECUTABLE, "EACCES"},
		{fork.Report{Failed: tagExec, Errno: unix.E2BIG}, guestv1.StartFailed_REASON_ARGUMENTS_TOO_LONG, "E2BIG"},
		{fork.Report{Failed: tagCwd, Errno: unix.EACCES}, guestv1.StartFailed_REASON_BAD_CWD, "EACCES"},
		{fork.Report{Failed: tagSetup, Errno: unix.EAGAIN}, guestv1.StartFailed_REASON_RESOURCES, "EAGAIN"},
		{fork.Report{Failed: tagSetup, Errno: unix.EPERM}, guestv1.StartFailed_REASON_OTHER, "EPERM"},
	} {
		if f := failure(c.report); f.Reason != c.reason || f.Errno != c.errno {
			t.Errorf("%+v: %v", c.report, f)
		}
	}
}
