package service

import (
	"context"
	"time"
	"unsafe"

	guestv1 "space/guest/gen/guest/v1"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"
)

const (
	ext4ResizeFS     = 0x40086610
	powerOffDelay    = 20 * time.Millisecond
	shutdownKillTime = 5 * time.Second
)

// Sync writes dirty pages back.
func (s *Service) Sync(context.Context, *connect.Request[guestv1.SyncRequest]) (*connect.Response[guestv1.SyncResponse], error) {
	if err := unix.Syncfs(s.Workload.Root.FD); err != nil {
		return nil, toConnect(err)
	}
	return connect.NewResponse(&guestv1.SyncResponse{}), nil
}

// GrowRoot grows the root filesystem to its device.
func (s *Service) GrowRoot(context.Context, *connect.Request[guestv1.GrowRootRequest]) (*connect.Response[guestv1.GrowRootResponse], error) {
	var fs unix.Statfs_t
	fd := s.Workload.Root.FD
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return nil, toConnect(err)
	}
	bytes, err := s.Workload.DriveBytes()
	if err != nil {
		return nil, toConnect(err)
	}
	blocks := uint64(bytes / fs.Bsize)
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), ext4ResizeFS, uintptr(unsafe.Pointer(&blocks))); e != 0 {
		return nil, toConnect(e)
	}
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return nil, toConnect(err)
	}
	return connect.NewResponse(&guestv1.GrowRootResponse{RootTotalBytes: int64(fs.Blocks) * fs.Bsize}), nil
}

// OnInitEnd powers off when the workload's process 1 ended by itself: it rebooted, or somebody ended it.
func (s *Service) OnInitEnd() {
	if !s.ending.Load() {
		s.PowerOff()
	}
}

// Shutdown ends the workload, writes back, answers, and powers off.
func (s *Service) Shutdown(context.Context, *connect.Request[guestv1.ShutdownRequest]) (*connect.Response[guestv1.ShutdownResponse], error) {
	s.ending.Store(true)
	_ = s.Freezer.ThawFilesystem()
	_ = s.Workload.Cgroup.Kill()
	_ = s.Freezer.ThawCgroup()
	for end := time.Now().Add(shutdownKillTime); s.Workload.Cgroup.Populated() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if err := unix.Syncfs(s.Workload.Root.FD); err != nil {
		return nil, toConnect(err)
	}
	time.AfterFunc(powerOffDelay, s.PowerOff)
	return connect.NewResponse(&guestv1.ShutdownResponse{}), nil
}
