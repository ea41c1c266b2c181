package workload

import (
	"space/guest/internal/fork"

	"golang.org/x/sys/unix"
)

type node struct {
	path         string
	major, minor uint32
	mode         uint32
}

// nodes of the workload's /dev. The port of the guest channel has none.
var nodes = []node{
	{"/dev/null", 1, 3, 0o666}, {"/dev/zero", 1, 5, 0o666}, {"/dev/full", 1, 7, 0o666},
	{"/dev/random", 1, 8, 0o666}, {"/dev/urandom", 1, 9, 0o666}, {"/dev/kmsg", 1, 11, 0o600},
	{"/dev/tty", 5, 0, 0o666}, {"/dev/fuse", 10, 229, 0o666}, {"/dev/net/tun", 10, 200, 0o666},
	{"/dev/loop-control", 10, 237, 0o600},
}

var links = [][2]string{
	{"/proc/self/fd", "/dev/fd"}, {"/proc/self/fd/0", "/dev/stdin"}, {"/proc/self/fd/1", "/dev/stdout"},
	{"/proc/self/fd/2", "/dev/stderr"}, {"pts/ptmx", "/dev/ptmx"}, {"/run", "/var/run"},
}

// TerminalMount is where the agent has the devpts that is the workload's /dev/pts.
const TerminalMount = "/terminals"

// initProgram is the life of the workload's process 1: it moves the root drive to /, fills it with the kernel's
// filesystems, and then reaps or becomes systemd. It waits at the gate until it is
// in its cgroup. Paths after the chroot are resolved inside the drive.
func initProgram(c Config, gate int) (*fork.Program, error) {
	run, err := unix.OpenTree(unix.AT_FDCWD, c.RunMount, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, err
	}
	terminals, err := unix.OpenTree(unix.AT_FDCWD, TerminalMount, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, err
	}
	p := &fork.Program{}
	tag := fork.Tag(0)
	must := func(number uintptr, args ...uintptr) {
		tag++
		p.Call(tag, number, args...)
	}
	s := p.String
	none := s("")
	mkdir := func(path string, mode uintptr) { p.Try(unix.SYS_MKDIR, s(path), mode) }
	mount := func(kind, path string, flags uintptr, data string) {
		mkdir(path, 0o755)
		must(unix.SYS_MOUNT, s(kind), s(path), s(kind), flags, s(data))
	}

	must(unix.SYS_READ, uintptr(gate), p.Bytes(make([]byte, 8)), 1)
	must(unix.SYS_MOUNT, none, s("/"), none, unix.MS_REC|unix.MS_PRIVATE, none)
	for _, path := range []string{"/proc", "/sys", "/dev", c.RunMount, TerminalMount} {
		p.Try(unix.SYS_UMOUNT2, s(path), unix.MNT_DETACH)
	}
	must(unix.SYS_CHDIR, s(c.DriveMount))
	must(unix.SYS_MOUNT, s("."), s("/"), none, unix.MS_MOVE, none)
	must(unix.SYS_CHROOT, s("."))
	must(unix.SYS_CHDIR, s("/"))
	p.Try(unix.SYS_UMASK, 0)
	p.Try(unix.SYS_SETSID)
	p.Try(unix.SYS_SETHOSTNAME, s(c.Hostname), uintptr(len(c.Hostname)))

	const plain = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	mount("proc", "/proc", plain, "")
	mount("sysfs", "/sys", plain, "")
	mount("cgroup2", mountPoint, plain, "")
	mount("tmpfs", "/dev", unix.MS_NOSUID, "mode=0755,size=1m")
	mkdir("/dev/net", 0o755)
	for _, n := range nodes {
		p.Try(unix.SYS_MKNOD, s(n.path), uintptr(unix.S_IFCHR|n.mode), uintptr(unix.Mkdev(n.major, n.minor)))
	}
	for _, l := range links {
		p.Try(unix.SYS_SYMLINK, s(l[0]), s(l[1]))
	}
	mkdir("/dev/pts", 0o755)
	attach(must, s, terminals, "/dev/pts")
	mkdir("/dev/shm", 0o1777)
	must(unix.SYS_MOUNT, s("tmpfs"), s("/dev/shm"), s("tmpfs"), unix.MS_NOSUID|unix.MS_NODEV, s("mode=1777"))
	mkdir("/dev/mqueue", 0o1777)
	p.Try(unix.SYS_MOUNT, s("mqueue"), s("/dev/mqueue"), s("mqueue"), plain, none)
	mkdir("/run", 0o755)
	attach(must, s, run, "/run")
	mkdir("/tmp", 0o1777)
	if c.ModulesMount != "" {
		modules, err := unix.OpenTree(unix.AT_FDCWD, c.ModulesMount, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return nil, err
		}
		mkdir("/lib", 0o755)
		mkdir("/lib/modules", 0o755)
		attach(must, s, modules, "/lib/modules")
	}

	p.Save(100, unix.SYS_OPEN, s("/dev/null"), unix.O_RDWR, 0)
	for fd := range uintptr(3) {
		p.WithSaved(101, 0, unix.SYS_DUP2, 0, fd)
	}
	p.Try(unix.SYS_UMASK, 0o022)
	if c.Systemd {
		p.CloseOthers()
		p.Exec(102, []string{"/sbin/init"}, []string{"/sbin/init"}, []string{"container=space", "PATH=" + DefaultPath})
		return p, nil
	}
	p.Try(unix.SYS_PRCTL, unix.PR_SET_NAME, s("init"), 0, 0, 0)
	p.Ready()
	p.Try(unix.SYS_CLOSE_RANGE, 3, uintptr(^uint32(0)), 0)
	p.Reap()
	return p, nil
}

// DefaultPath is the PATH of a process that is given none.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func attach(must func(uintptr, ...uintptr), s func(string) uintptr, tree int, path string) {
	at := unix.AT_FDCWD
	must(unix.SYS_MOVE_MOUNT, uintptr(tree), s(""), uintptr(at), s(path), unix.MOVE_MOUNT_F_EMPTY_PATH)
}
