// Package service answers the calls of proto/guest/v1 by the agent's parts.
package service

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"

	guestv1 "space/guest/gen/guest/v1"
	"space/guest/gen/guest/v1/guestv1connect"
	"space/guest/internal/link"
	"space/guest/internal/process"
	"space/guest/internal/workload"

	"connectrpc.com/connect"
	"golang.org/x/net/http2"
)

// Limits of one session (guest/PROTOCOL.md).
const (
	maxMessageBytes   = 1 << 20
	maxHeaderBytes    = 16 << 10
	maxStreams        = process.MaxProcesses + 256
	maxFrameBytes     = 256 << 10
	connectionWindow  = 4 << 20
	streamWindow      = 512 << 10
	compressNeverFrom = 1 << 30
)

// Service holds the parts the calls act on.
type Service struct {
	guestv1connect.UnimplementedGuestServiceHandler
	Build    string
	Workload *workload.Workload
	Freezer  *workload.Freezer
	Table    *process.Table
	Link     *link.Link
	// PowerOff ends the machine after a Shutdown was answered.
	PowerOff func()

	identity identity
	idle     idle
	ending   atomic.Bool
}

// Serve speaks HTTP/2 on one session until it ends.
func (s *Service) Serve(session net.Conn) {
	_, handler := guestv1connect.NewGuestServiceHandler(s,
		connect.WithReadMaxBytes(maxMessageBytes),
		connect.WithCompression("gzip", nil, nil),
		connect.WithCompressMinBytes(compressNeverFrom),
	)
	server := &http2.Server{
		MaxConcurrentStreams:         maxStreams,
		MaxReadFrameSize:             maxFrameBytes,
		MaxUploadBufferPerConnection: connectionWindow,
		MaxUploadBufferPerStream:     streamWindow,
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server.ServeConn(session, &http2.ServeConnOpts{
		Context:    ctx,
		BaseConfig: &http.Server{MaxHeaderBytes: maxHeaderBytes},
		Handler:    handler,
	})
}

// Signal sends a signal to a process, its group or its tree.
func (s *Service) Signal(_ context.Context, r *connect.Request[guestv1.SignalRequest]) (*connect.Response[guestv1.SignalResponse], error) {
	if r.Msg.Signal < 1 || r.Msg.Signal > 64 {
		return nil, connect.NewError(connect.CodeInvalidArgument, errSignal)
	}
	p, err := s.Table.Find(r.Msg.ProcessId)
	if err != nil {
		return nil, toConnect(err)
	}
	return connect.NewResponse(&guestv1.SignalResponse{Delivered: p.Signal(signalOf(r.Msg.Signal), r.Msg.Scope)}), nil
}

// Forget drops exited processes.
func (s *Service) Forget(_ context.Context, r *connect.Request[guestv1.ForgetRequest]) (*connect.Response[guestv1.ForgetResponse], error) {
	s.Table.Forget(r.Msg.ProcessIds)
	return connect.NewResponse(&guestv1.ForgetResponse{}), nil
}

// SetLinkSecret makes the bytes the prefix of the next handshake.
func (s *Service) SetLinkSecret(_ context.Context, r *connect.Request[guestv1.SetLinkSecretRequest]) (*connect.Response[guestv1.SetLinkSecretResponse], error) {
	if len(r.Msg.Prefix) != link.PrefixSize {
		return nil, connect.NewError(connect.CodeInvalidArgument, errPrefix)
	}
	s.Link.SetPrefix(link.Prefix(r.Msg.Prefix))
	return connect.NewResponse(&guestv1.SetLinkSecretResponse{}), nil
}
