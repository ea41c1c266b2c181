package workload

import (
	"path"

	"golang.org/x/sys/unix"
)

// runFolder is the agent's own view of the workload's /run.
type runFolder struct{ Root }

// replace writes a file anew in a folder of /run and puts it in the place of the old one at once.
func (r *runFolder) replace(name string, content []byte) error {
	folder := path.Dir(name)
	if err := unix.Mkdirat(r.FD, folder, 0o755); err != nil && err != unix.EEXIST {
		return err
	}
	dir, err := unix.Openat2(r.FD, folder, &unix.OpenHow{
		Flags: unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	const temporary = ".space-new"
	_ = unix.Unlinkat(dir, temporary, 0)
	fd, err := unix.Openat(dir, temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, content)
	unix.Close(fd)
	if err != nil {
		return err
	}
	return unix.Renameat(dir, temporary, dir, path.Base(name))
}
