package workload

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"space/guest/internal/fork"

	"golang.org/x/sys/unix"
)

const (
	hooksFolder       = "etc/space/wake.d"
	maxHooks          = 64
	maxHostnameBytes  = 64
	maxHostsFileBytes = 1 << 20
	hostnameLimit     = time.Second
	hostsMark         = " # this sandbox"
)

// SetHostname names the workload's UTS namespace and makes the name resolvable without DNS.
func (w *Workload) SetHostname(name string) error {
	if name == "" {
		return nil
	}
	if len(name) > maxHostnameBytes || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return unix.EINVAL
	}
	p := &fork.Program{}
	p.Call(1, unix.SYS_SETNS, uintptr(w.initFD), unix.CLONE_NEWUTS)
	p.Call(2, unix.SYS_SETHOSTNAME, p.String(name), uintptr(len(name)))
	if err := w.RunBeside(p, hostnameLimit); err != nil {
		return err
	}
	_ = w.Root.WriteFile("etc/hostname", []byte(name+"\n"), 0o644)
	hosts, _ := w.Root.ReadFile("etc/hosts", maxHostsFileBytes)
	_ = w.Root.WriteFile("etc/hosts", withHost(hosts, name), 0o644)
	return nil
}

// withHost replaces the line of the sandbox's own name.
func withHost(hosts []byte, name string) []byte {
	var out []byte
	for line := range bytes.Lines(hosts) {
		if !bytes.HasSuffix(bytes.TrimRight(line, "\n"), []byte(hostsMark)) {
			out = append(out, line...)
		}
	}
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	return append(out, "127.0.1.1 "+name+hostsMark+"\n"...)
}

// SetGeneration changes /run/space/generation.
func (w *Workload) SetGeneration(generation string) error {
	return w.run.replace("space/generation", []byte(generation+"\n"))
}

// InstallCA puts the certificates where programs of the workload find them; empty leaves them as they are.
func (w *Workload) InstallCA(pem []byte) error {
	if len(pem) == 0 {
		return nil
	}
	return w.run.replace("space/ca.pem", pem)
}

// RunWakeHooks runs the executables of /etc/space/wake.d one after the other as root, beside the frozen workload. It
// returns the names of those that failed or did not end within the limit, which all have together.
func (w *Workload) RunWakeHooks(limit time.Duration, env map[string]string) []string {
	var failed []string
	end := time.Now().Add(limit)
	for _, name := range w.hookNames() {
		path := "/" + hooksFolder + "/" + name
		p := &fork.Program{}
		p.Call(1, unix.SYS_SETSID)
		p.Save(1, unix.SYS_OPEN, p.String("/dev/null"), unix.O_RDWR, 0)
		for fd := range uintptr(3) {
			p.WithSaved(1, 0, unix.SYS_DUP2, 0, fd)
		}
		w.Join(1, p)
		p.CloseOthers()
		p.Call(1, unix.SYS_UMASK, 0o022)
		p.Call(1, unix.SYS_CHDIR, p.String("/"))
		variables := []string{"PATH=" + DefaultPath, "HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/sh"}
		for name, value := range env {
			variables = append(variables, name+"="+value)
		}
		p.Exec(2, []string{path}, []string{path}, variables)
		if time.Now().After(end) || w.RunBeside(p, time.Until(end)) != nil {
			failed = append(failed, name)
		}
	}
	return failed
}

// hookNames lists the hooks in the order of their names; hidden files and those not executable are passed over.
func (w *Workload) hookNames() []string {
	fd, err := w.Root.Open(hooksFolder, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	buffer := make([]byte, 16<<10)
	var names []string
	for len(names) < maxHooks {
		n, err := unix.Getdents(fd, buffer)
		if err != nil || n == 0 {
			break
		}
		_, _, names = unix.ParseDirent(buffer[:n], maxHooks-len(names), names)
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool {
		var st unix.Stat_t
		return name[0] == '.' || unix.Fstatat(fd, name, &st, 0) != nil || st.Mode&0o111 == 0 || st.Mode&unix.S_IFMT != unix.S_IFREG
	})
}
