package service

import (
	"context"
	"time"

	guestv1 "space/guest/gen/guest/v1"
	"space/guest/internal/clock"
	"space/guest/internal/random"
	"space/guest/internal/workload"

	"connectrpc.com/connect"
)

// wakeHooksLimit is the time all wake hooks have together.
const wakeHooksLimit = 2 * time.Second

// SetClock corrects the wall clock.
func (s *Service) SetClock(_ context.Context, r *connect.Request[guestv1.SetClockRequest]) (*connect.Response[guestv1.SetClockResponse], error) {
	offset, stepped, err := clock.Set(r.Msg.UnixNs)
	if err != nil {
		return nil, toConnect(err)
	}
	return connect.NewResponse(&guestv1.SetClockResponse{OffsetNs: int64(offset), Stepped: stepped}), nil
}

// Freeze stops the workload and its filesystem for a save.
func (s *Service) Freeze(_ context.Context, r *connect.Request[guestv1.FreezeRequest]) (*connect.Response[guestv1.FreezeResponse], error) {
	cgroupLimit := milliseconds(r.Msg.CgroupTimeoutMs, workload.DefaultCgroupFreezeLimit)
	filesystemLimit := milliseconds(r.Msg.FilesystemTimeoutMs, workload.DefaultFilesystemFreezeLimit)
	if !s.Table.RefuseStarts(cgroupLimit) {
		s.Table.AllowStarts()
		return nil, toConnect(errInFlight)
	}
	if err := s.Freezer.Freeze(cgroupLimit, filesystemLimit, s.Table.Drain); err != nil {
		s.Table.AllowStarts()
		return nil, toConnect(err)
	}
	return connect.NewResponse(&guestv1.FreezeResponse{}), nil
}

// Thaw takes up again after a save without a restore.
func (s *Service) Thaw(context.Context, *connect.Request[guestv1.ThawRequest]) (*connect.Response[guestv1.ThawResponse], error) {
	if err := s.thaw(); err != nil {
		return nil, toConnect(err)
	}
	return connect.NewResponse(&guestv1.ThawResponse{}), nil
}

// Wake makes a restored guest its own before any user code runs. Nothing is skipped on a failure but by returning it:
// the workload then stays frozen.
func (s *Service) Wake(_ context.Context, r *connect.Request[guestv1.WakeRequest]) (*connect.Response[guestv1.WakeResponse], error) {
	if err := clock.Step(r.Msg.UnixNs); err != nil {
		return nil, toConnect(err)
	}
	if err := random.Reseed(r.Msg.Entropy); err != nil {
		return nil, toConnect(err)
	}
	if err := s.Freezer.ThawFilesystem(); err != nil {
		return nil, toConnect(err)
	}
	s.Table.SetEnvironment(r.Msg.Env)
	if err := s.Workload.InstallCA(r.Msg.CaCertificatesPem); err != nil {
		return nil, toConnect(err)
	}
	if err := s.Workload.SetHostname(r.Msg.Hostname); err != nil {
		return nil, toConnect(err)
	}
	if err := s.Workload.SetGeneration(r.Msg.Generation); err != nil {
		return nil, toConnect(err)
	}
	s.identity.mu.Lock()
	s.identity.generation = r.Msg.Generation
	s.identity.mu.Unlock()
	failed := s.Workload.RunWakeHooks(wakeHooksLimit, r.Msg.Env)
	if err := s.thaw(); err != nil {
		return nil, toConnect(err)
	}
	return connect.NewResponse(&guestv1.WakeResponse{FailedHooks: failed}), nil
}

func (s *Service) thaw() error {
	if err := s.Freezer.ThawFilesystem(); err != nil {
		return err
	}
	if err := s.Freezer.ThawCgroup(); err != nil {
		return err
	}
	s.Table.AllowStarts()
	return nil
}

func milliseconds(n uint32, otherwise time.Duration) time.Duration {
	if n == 0 {
		return otherwise
	}
	return time.Duration(n) * time.Millisecond
}
