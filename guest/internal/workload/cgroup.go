package workload

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The cgroup tree. Everything a sandbox runs is below Root, which is the root of the workload's cgroup namespace.
//
//	/sys/fs/cgroup             the agent
//	  workload/                freeze, limits, accounting; the workload sees it as /
//	    init.scope/            its process 1
//	    space/p1, p2, …        one a process the node started
//	  hooks/                   wake hooks and file work, which run while the workload is frozen
const (
	mountPoint = "/sys/fs/cgroup"
	rootPath   = mountPoint + "/workload"
	initPath   = rootPath + "/init.scope"
	spacePath  = rootPath + "/space"
	hooksPath  = mountPoint + "/hooks"
)

// Cgroup is one directory of the tree. It can be asked also after its
// removal: paths are never used again.
type Cgroup struct {
	Path string
	// FD is the open directory, for clone3, until the removal.
	FD int
	// oomBefore is how many of its processes had been killed for memory before it was used again.
	oomBefore int64
	// watch is the pool's inotify watch; tainted means that somebody wrote into the cgroup.
	watch   int
	tainted bool
}

// OutOfMemory says whether the kernel ended a process of the cgroup because memory had run out.
func (c *Cgroup) OutOfMemory() bool { return c.Field("memory.events", "oom_kill") > c.oomBefore }

func makeCgroup(path string) (*Cgroup, error) {
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	fd, err := unix.Open(path, unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return &Cgroup{Path: path, FD: fd}, nil
}

// Read returns a control file's content, at most 64 KiB.
func (c *Cgroup) Read(file string) (string, error) {
	fd, err := unix.Open(c.Path+"/"+file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var out []byte
	var chunk [4096]byte
	for len(out) < 64<<10 {
		n, err := unix.Read(fd, chunk[:])
		if err != nil {
			return "", err
		}
		if n == 0 {
			break
		}
		out = append(out, chunk[:n]...)
	}
	return string(out), nil
}

// Write sets a control file.
func (c *Cgroup) Write(file, value string) error {
	fd, err := unix.Open(c.Path+"/"+file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(value))
	return err
}

// Field returns a number of a "name value" file; 0 when it is not there.
func (c *Cgroup) Field(file, name string) int64 {
	text, _ := c.Read(file)
	return field(text, name)
}

// Number returns a file that holds one number.
func (c *Cgroup) Number(file string) int64 {
	text, _ := c.Read(file)
	n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n
}

// Populated says whether a live process is in the cgroup or below it.
func (c *Cgroup) Populated() bool { return c.Field("cgroup.events", "populated") != 0 }

// Kill ends every process of the cgroup and below it.
func (c *Cgroup) Kill() error { return c.Write("cgroup.kill", "1") }

// Signal sends a signal to every process of the cgroup and below it, and returns how many got it.
func (c *Cgroup) Signal(signal unix.Signal) int {
	count := 0
	_ = filepath.WalkDir(c.Path, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil
		}
		list, _ := os.ReadFile(path + "/cgroup.procs")
		for line := range bytes.Lines(list) {
			pid, err := strconv.Atoi(string(bytes.TrimSpace(line)))
			if err == nil && pid > 1 && unix.Kill(pid, signal) == nil {
				count++
			}
		}
		return nil
	})
	return count
}

// SetFrozen freezes or thaws the cgroup and waits until it is so, or returns os.ErrDeadlineExceeded.
func (c *Cgroup) SetFrozen(frozen bool, limit time.Duration) error {
	value, want := "0", int64(0)
	if frozen {
		value, want = "1", 1
	}
	if err := c.Write("cgroup.freeze", value); err != nil {
		return err
	}
	for end := time.Now().Add(limit); ; time.Sleep(500 * time.Microsecond) {
		if c.Field("cgroup.events", "frozen") == want {
			return nil
		}
		if time.Now().After(end) {
			return os.ErrDeadlineExceeded
		}
	}
}

// Remove deletes the cgroup and the empty ones the workload made below it; an error means that something lives there.
func (c *Cgroup) Remove() error {
	err := unix.Rmdir(c.Path)
	if err == unix.EBUSY && !c.Populated() {
		removeBelow(c.Path)
		err = unix.Rmdir(c.Path)
	}
	if err != nil && err != unix.ENOENT {
		return err
	}
	return unix.Close(c.FD)
}

func removeBelow(path string) {
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		if e.IsDir() {
			removeBelow(path + "/" + e.Name())
			_ = unix.Rmdir(path + "/" + e.Name())
		}
	}
}

func field(text, name string) int64 {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && key == name {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}
