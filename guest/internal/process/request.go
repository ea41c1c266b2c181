package process

import (
	"strings"

	guestv1 "space/guest/gen/guest/v1"
	"space/guest/internal/fork"
	"space/guest/internal/workload"

	"golang.org/x/sys/unix"
)

// Bounds of a start; the size of the whole request is bounded by the message.
const (
	maxIDBytes       = 128
	maxArguments     = 16384
	maxVariables     = 4096
	maxCwdBytes      = 4096
	maxUserBytes     = 256
	maxTerminalCells = 65535
)

// check refuses what cannot be a process anywhere.
func check(r *guestv1.Start) error {
	switch {
	case r.ProcessId == "" || len(r.ProcessId) > maxIDBytes:
		return &InvalidStart{"process_id: 1 to 128 bytes"}
	case len(r.Argv) == 0 || r.Argv[0] == "":
		return &InvalidStart{"argv: a program is needed"}
	case len(r.Argv) > maxArguments:
		return &InvalidStart{"argv: too many"}
	case len(r.Env) > maxVariables:
		return &InvalidStart{"env: too many"}
	case len(r.Cwd) > maxCwdBytes || hasNul(r.Cwd):
		return &InvalidStart{"cwd"}
	case len(r.User) > maxUserBytes || hasNul(r.User):
		return &InvalidStart{"user"}
	case r.TimeoutMs < 0:
		return &InvalidStart{"timeout_ms: below 0"}
	case r.Pty != nil && (r.Pty.Cols > maxTerminalCells || r.Pty.Rows > maxTerminalCells):
		return &InvalidStart{"pty: too large"}
	}
	for _, a := range r.Argv {
		if hasNul(a) {
			return &InvalidStart{"argv: a NUL byte"}
		}
	}
	for name, value := range r.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || hasNul(value) {
			return &InvalidStart{"env: a bad name or a NUL byte"}
		}
	}
	return nil
}

func hasNul(s string) bool { return strings.IndexByte(s, 0) >= 0 }

// environment puts the request's variables over the sandbox's, and those over what every login gives.
func environment(user workload.User, sandbox, request map[string]string) map[string]string {
	env := make(map[string]string, 5+len(sandbox)+len(request))
	env["HOME"], env["USER"], env["LOGNAME"], env["SHELL"] = user.Home, user.Name, user.Name, user.Shell
	env["PATH"] = workload.DefaultPath
	for name, value := range sandbox {
		env[name] = value
	}
	for name, value := range request {
		env[name] = value
	}
	return env
}

func list(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for name, value := range env {
		out = append(out, name+"="+value)
	}
	return out
}

// candidates are the files a program's name can mean, as execvp takes them.
func candidates(program, path string) []string {
	if strings.Contains(program, "/") {
		return []string{program}
	}
	var out []string
	for dir := range strings.SplitSeq(path, ":") {
		if dir == "" {
			dir = "."
		}
		out = append(out, dir+"/"+program)
	}
	return out
}

// failure turns the step that failed and its errno into a reason.
func failure(r fork.Report) *StartFailure {
	f := &StartFailure{Reason: guestv1.StartFailed_REASON_OTHER, Errno: errnoName(r.Errno)}
	switch {
	case r.Errno == unix.EAGAIN || r.Errno == unix.ENOMEM || r.Errno == unix.EMFILE || r.Errno == unix.ENFILE:
		f.Reason = guestv1.StartFailed_REASON_RESOURCES
	case r.Failed == tagCwd:
		f.Reason = guestv1.StartFailed_REASON_BAD_CWD
	case r.Failed != tagExec:
	case r.MissingInterpreter || r.Errno == unix.ELIBBAD:
		f.Reason = guestv1.StartFailed_REASON_BAD_INTERPRETER
	case r.Errno == unix.ENOENT || r.Errno == unix.ENOTDIR:
		f.Reason = guestv1.StartFailed_REASON_PROGRAM_NOT_FOUND
	case r.Errno == unix.EACCES || r.Errno == unix.ENOEXEC || r.Errno == unix.EPERM || r.Errno == unix.EISDIR:
		f.Reason = guestv1.StartFailed_REASON_PROGRAM_NOT_EXECUTABLE
	case r.Errno == unix.E2BIG:
		f.Reason = guestv1.StartFailed_REASON_ARGUMENTS_TOO_LONG
	}
	return f
}

func resources(err error) *StartFailure {
	name := "EIO"
	if errno, ok := err.(unix.Errno); ok {
		name = errnoName(errno)
	}
	return &StartFailure{Reason: guestv1.StartFailed_REASON_RESOURCES, Errno: name}
}

func errnoName(e unix.Errno) string {
	if name := unix.ErrnoName(e); name != "" {
		return name
	}
	return "EUNKNOWN"
}
