package workload

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxAccountFileBytes bounds /etc/passwd and /etc/group; what lies beyond is not looked at.
const maxAccountFileBytes = 1 << 20

// ErrUnknownUser says that the workload's /etc/passwd does not have the user.
var ErrUnknownUser = errors.New("unknown user")

// User is who a process runs as.
type User struct {
	Name   string
	UID    uint32
	GID    uint32
	Groups []uint32
	Home   string
	Shell  string
}

// defaultUser is taken where no user is given and the root drive has it; else root.
const defaultUser = "user"

// Accounts answers who a user is from the root drive itself, so that no mount of the workload is touched.
type Accounts struct {
	root   *Root
	passwd cachedFile
	group  cachedFile
}

// Lookup finds "name", "uid", "uid:gid" or, when empty, the default user. It must not be called by two at a time.
func (a *Accounts) Lookup(name string) (User, error) {
	passwd := a.passwd.read(a.root, "etc/passwd")
	if name == "" {
		if u, ok := findUser(passwd, defaultUser); ok {
			return a.withGroups(u), nil
		}
		name = "root"
	}
	if u, ok := findUser(passwd, name); ok {
		return a.withGroups(u), nil
	}
	uidText, gidText, hasGID := strings.Cut(name, ":")
	uid, err := parseID(uidText)
	if err != nil {
		if name == "root" {
			return User{Name: "root", Home: "/root", Shell: "/bin/sh", Groups: []uint32{0}}, nil
		}
		return User{}, ErrUnknownUser
	}
	u, known := findUserByID(passwd, uid)
	if !known {
		u = User{Name: uidText, UID: uid, GID: uid, Home: "/", Shell: "/bin/sh"}
	}
	if !hasGID {
		if !known {
			u.Groups = []uint32{u.GID}
			return u, nil
		}
		return a.withGroups(u), nil
	}
	gid, err := parseID(gidText)
	if err != nil {
		return User{}, ErrUnknownUser
	}
	u.GID, u.Groups = gid, []uint32{gid}
	return u, nil
}

func (a *Accounts) withGroups(u User) User {
	u.Groups = groupsOf(a.group.read(a.root, "etc/group"), u)
	return u
}

func parseID(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err == nil && n == 1<<32-1 {
		err = strconv.ErrRange
	}
	return uint32(n), err
}

func findUser(passwd []byte, name string) (User, bool) {
	return scanUsers(passwd, func(u User) bool { return u.Name == name })
}

func findUserByID(passwd []byte, uid uint32) (User, bool) {
	return scanUsers(passwd, func(u User) bool { return u.UID == uid })
}

func scanUsers(passwd []byte, matches func(User) bool) (User, bool) {
	for line := range bytes.Lines(passwd) {
		f := strings.Split(strings.TrimRight(string(line), "\r\n"), ":")
		if len(f) < 7 || f[0] == "" {
			continue
		}
		uid, err1 := parseID(f[2])
		gid, err2 := parseID(f[3])
		if err1 != nil || err2 != nil {
			continue
		}
		u := User{Name: f[0], UID: uid, GID: gid, Home: f[5], Shell: f[6]}
		if u.Home == "" {
			u.Home = "/"
		}
		if u.Shell == "" {
			u.Shell = "/bin/sh"
		}
		if matches(u) {
			return u, true
		}
	}
	return User{}, false
}

// maxGroups is the kernel's limit of supplementary groups that are looked at here.
const maxGroups = 1024

func groupsOf(group []byte, u User) []uint32 {
	groups := []uint32{u.GID}
	for line := range bytes.Lines(group) {
		f := strings.Split(strings.TrimRight(string(line), "\r\n"), ":")
		if len(f) < 4 || len(groups) >= maxGroups {
			continue
		}
		gid, err := parseID(f[2])
		if err != nil || gid == u.GID {
			continue
		}
		for member := range strings.SplitSeq(f[3], ",") {
			if member == u.Name {
				groups = append(groups, gid)
				break
			}
		}
	}
	return groups
}

// cachedFile keeps a file's content until its identity or times change.
type cachedFile struct {
	stat    unix.Stat_t
	content []byte
}

func (c *cachedFile) read(root *Root, path string) []byte {
	fd, err := root.Open(path, unix.O_RDONLY|unix.O_NOATIME, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	same := st.Dev == c.stat.Dev && st.Ino == c.stat.Ino && st.Size == c.stat.Size && st.Mtim == c.stat.Mtim && st.Ctim == c.stat.Ctim
	if same && c.content != nil {
		return c.content
	}
	content := make([]byte, min(st.Size, maxAccountFileBytes))
	n, err := unix.Pread(fd, content, 0)
	if err != nil {
		return nil
	}
	c.stat, c.content = st, content[:n]
	return c.content
}
