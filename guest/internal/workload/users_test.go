package workload

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// drive is a folder that stands for the root drive.
func drive(t *testing.T, files map[string]string) *Root {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fd, err := unix.Open(folder, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return &Root{FD: fd}
}

const passwd = "root:x:0:0:root:/root:/bin/bash\n# a comment\nbroken:x:1\nbad:x:-1:0::/:/bin/sh\nuser:x:1000:1000:,,,:/home/user:/bin/bash\nbare:x:7:8:::\n"
const group = "root:x:0:\nsudo:x:27:other,user\nuser:x:1000:user\ndocker:x:99:user\n"

func TestLookupKnowsNamesIdsAndGroups(t *testing.T) {
	a := &Accounts{root: drive(t, map[string]string{"etc/passwd": passwd, "etc/group": group})}
	for name, want := range map[string]User{
		"":          {"user", 1000, 1000, []uint32{1000, 27, 99}, "/home/user", "/bin/bash"},
		"user":      {"user", 1000, 1000, []uint32{1000, 27, 99}, "/home/user", "/bin/bash"},
		"1000":      {"user", 1000, 1000, []uint32{1000, 27, 99}, "/home/user", "/bin/bash"},
		"1000:5":    {"user", 1000, 5, []uint32{5}, "/home/user", "/bin/bash"},
		"4242":      {"4242", 4242, 4242, []uint32{4242}, "/", "/bin/sh"},
		"4242:4243": {"4242", 4242, 4243, []uint32{4243}, "/", "/bin/sh"},
		"bare":      {"bare", 7, 8, []uint32{8}, "/", "/bin/sh"},
	} {
		got, err := a.Lookup(name)
		if err != nil || got.Name != want.Name || got.UID != want.UID || got.GID != want.GID || !slices.Equal(got.Groups, want.Groups) ||
			got.Home != want.Home || got.Shell != want.Shell {
			t.Errorf("%q: %+v %v", name, got, err)
		}
	}
	for _, name := range []string{"nobody", "broken", "bad", "-1", "4294967295", "1000:x", ":", "root:root:root"} {
		if u, err := a.Lookup(name); !errors.Is(err, ErrUnknownUser) {
			t.Errorf("%q: %+v %v", name, u, err)
		}
	}
}

func TestLookupSeesAChangedFile(t *testing.T) {
	root := drive(t, map[string]string{"etc/passwd": passwd})
	a := &Accounts{root: root}
	if _, err := a.Lookup("later"); err == nil {
		t.Fatal("known before")
	}
	if err := root.WriteFile("etc/passwd", []byte(passwd+"later:x:5:5::/:/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Lookup("later"); err != nil {
		t.Fatal(err)
	}
}

func TestLookupSurvivesAnEmptyDriveAndAFifo(t *testing.T) {
	root := drive(t, map[string]string{"etc/group": ""})
	if err := unix.Mkfifoat(root.FD, "etc/passwd", 0o644); err != nil {
		t.Fatal(err)
	}
	a := &Accounts{root: root}
	if u, err := a.Lookup(""); err != nil || u.UID != 0 || u.Home != "/root" {
		t.Error(u, err)
	}
}

func TestRootKeepsPathsInside(t *testing.T) {
	root := drive(t, map[string]string{"etc/real": "inside"})
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("host"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"etc/a": outside, "etc/b": "../../../../../.." + outside} {
		if err := unix.Symlinkat(target, root.FD, name); err != nil {
			t.Fatal(err)
		}
		if _, err := root.ReadFile(name, 100); err == nil {
			t.Error(name, "led out")
		}
		if err := root.ReplaceFile(name, []byte("x"), 0o644); err != nil {
			t.Error(err)
		}
	}
	if text, _ := os.ReadFile(outside); string(text) != "host" {
		t.Errorf("%s", text)
	}
	if text, err := root.ReadFile("/etc/real", 3); err != nil || string(text) != "ins" {
		t.Error(string(text), err)
	}
}

func TestTheSandboxHasOneLineInHosts(t *testing.T) {
	hosts := withHost([]byte("127.0.0.1 localhost"), "one")
	hosts = withHost(hosts, "two")
	if got := string(hosts); got != "127.0.0.1 localhost\n127.0.1.1 two"+hostsMark+"\n" || strings.Contains(got, "one") {
		t.Errorf("%q", got)
	}
}
