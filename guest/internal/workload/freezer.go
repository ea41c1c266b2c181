package workload

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Errors of a freeze, one a step; after each of them everything is as before.
var (
	ErrCgroupFreeze     = errors.New("the workload's cgroup did not freeze in time")
	ErrFilesystemFreeze = errors.New("the root filesystem did not freeze in time")
)

// Limits of the steps where the node gives none.
const (
	DefaultCgroupFreezeLimit     = 250 * time.Millisecond
	DefaultFilesystemFreezeLimit = 2 * time.Second
	thawLimit                    = 2 * time.Second
)

// Freezer stops the workload and then its filesystem, never the other way round: a process that waits in a write to a
// frozen filesystem cannot be frozen.
type Freezer struct {
	workload *Workload

	mu               sync.Mutex
	cgroupFrozen     bool
	filesystemFrozen bool
}

// NewFreezer makes the freezer of a running workload.
func NewFreezer(w *Workload) *Freezer { return &Freezer{workload: w} }

// Freeze stops the cgroup, calls drain, then writes back and stops the root filesystem. Frozen already is no error.
func (f *Freezer) Freeze(cgroupLimit, filesystemLimit time.Duration, drain func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.filesystemFrozen {
		return nil
	}
	if !f.cgroupFrozen {
		if err := f.workload.Cgroup.SetFrozen(true, cgroupLimit); err != nil {
			_ = f.workload.Cgroup.Write("cgroup.freeze", "0")
			return fmt.Errorf("%w: %w", ErrCgroupFreeze, err)
		}
		f.cgroupFrozen = true
	}
	drain()
	if err := f.freezeFilesystem(filesystemLimit); err != nil {
		_ = f.workload.Cgroup.Write("cgroup.freeze", "0")
		f.cgroupFrozen = false
		return fmt.Errorf("%w: %w", ErrFilesystemFreeze, err)
	}
	f.filesystemFrozen = true
	return nil
}

// freezeFilesystem waits for the two system calls on a thread of their own. They cannot be interrupted, so a freeze
// that succeeds too late is undone by that thread itself.
func (f *Freezer) freezeFilesystem(limit time.Duration) error {
	result := make(chan error)
	abandoned := make(chan struct{})
	go func() {
		err := unix.Syncfs(f.workload.Root.FD)
		select {
		case <-abandoned:
			return
		default:
		}
		if err == nil {
			err = unix.IoctlSetInt(f.workload.Root.FD, fiFreeze, 0)
		}
		select {
		case result <- err:
		case <-abandoned:
			if err == nil {
				_ = unix.IoctlSetInt(f.workload.Root.FD, fiThaw, 0)
			}
		}
	}()
	select {
	case err := <-result:
		return err
	case <-time.After(limit):
		close(abandoned)
		return ErrTimeout
	}
}

const (
	fiFreeze = 0xC0045877
	fiThaw   = 0xC0045878
)

// ThawFilesystem lets the root filesystem be written again.
func (f *Freezer) ThawFilesystem() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.filesystemFrozen {
		return nil
	}
	if err := unix.IoctlSetInt(f.workload.Root.FD, fiThaw, 0); err != nil && err != unix.EINVAL {
		return err
	}
	f.filesystemFrozen = false
	return nil
}

// ThawCgroup lets the workload run again.
func (f *Freezer) ThawCgroup() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.cgroupFrozen {
		return nil
	}
	if err := f.workload.Cgroup.SetFrozen(false, thawLimit); err != nil {
		return err
	}
	f.cgroupFrozen = false
	return nil
}
