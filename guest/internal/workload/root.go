package workload

import (
	"errors"

	"golang.org/x/sys/unix"
)

// ErrNotRegular says that a path of the root drive is not a regular file.
var ErrNotRegular = errors.New("not a regular file")

// Root is the agent's own view of the root drive: its filesystem without anything the workload mounts over it. Paths
// are resolved inside it, so a symbolic link never leads out.
type Root struct {
	FD int
}

// Open opens a path of the root drive, relative to it. It never blocks on a FIFO.
func (r *Root) Open(path string, flags int, mode uint32) (int, error) {
	return unix.Openat2(r.FD, path, &unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY),
		Mode:    uint64(mode),
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// ReadFile returns a regular file's content, at most limit bytes.
func (r *Root) ReadFile(path string, limit int) ([]byte, error) {
	fd, err := r.Open(path, unix.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, ErrNotRegular
	}
	content := make([]byte, min(st.Size, int64(limit)))
	n, err := unix.Pread(fd, content, 0)
	if err != nil {
		return nil, err
	}
	return content[:n], nil
}

// WriteFile replaces a regular file's content in place, making it when it is not there.
func (r *Root) WriteFile(path string, content []byte, mode uint32) error {
	fd, err := r.Open(path, unix.O_WRONLY|unix.O_CREAT, mode)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return ErrNotRegular
	}
	if err := unix.Ftruncate(fd, 0); err != nil {
		return err
	}
	_, err = unix.Pwrite(fd, content, 0)
	return err
}

// ReplaceFile puts a new regular file in the place of whatever the path is, also of a symbolic link.
func (r *Root) ReplaceFile(path string, content []byte, mode uint32) error {
	_ = unix.Unlinkat(r.FD, path, 0)
	return r.WriteFile(path, content, mode)
}
