package service

import (
	"context"
	"errors"
	"io"

	guestv1 "space/guest/gen/guest/v1"
	"space/guest/internal/process"

	"connectrpc.com/connect"
)

type attachStream = connect.BidiStream[guestv1.AttachRequest, guestv1.AttachResponse]

// Attach starts or joins a process and carries its output until it has ended or another stream joins.
func (s *Service) Attach(ctx context.Context, stream *attachStream) error {
	s.idle.begin()
	defer s.idle.end()
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	attachment, failure, err := s.open(first)
	if failure != nil {
		return stream.Send(&guestv1.AttachResponse{Kind: &guestv1.AttachResponse_StartFailed{StartFailed: failure}})
	}
	if err != nil {
		return toConnect(err)
	}
	defer attachment.Detach()
	received := make(chan error, 1)
	go func() { received <- receive(stream, attachment) }()
	for {
		answer, last := attachment.Next()
		if answer != nil {
			if err := stream.Send(answer); err != nil {
				return err
			}
			if last {
				return nil
			}
			continue
		}
		select {
		case <-attachment.Wake:
		case <-attachment.Superseded:
			return toConnect(process.ErrSuperseded)
		case <-ctx.Done():
			return ctx.Err()
		case err := <-received:
			if err != nil {
				return toConnect(err)
			}
			received = nil // the node sends no more, but still listens
		}
	}
}

func (s *Service) open(first *guestv1.AttachRequest) (*process.Attachment, *guestv1.StartFailed, error) {
	switch kind := first.Kind.(type) {
	case *guestv1.AttachRequest_Start:
		p, err := s.Table.Start(kind.Start)
		var failure *process.StartFailure
		if errors.As(err, &failure) {
			return nil, &guestv1.StartFailed{Reason: failure.Reason, Errno: failure.Errno}, nil
		}
		if err != nil {
			return nil, nil, err
		}
		a, err := p.Attach(0)
		return a, nil, err
	case *guestv1.AttachRequest_Join:
		p, err := s.Table.Find(kind.Join.ProcessId)
		if err != nil {
			return nil, nil, err
		}
		a, err := p.Attach(kind.Join.FromOffset)
		return a, nil, err
	}
	return nil, nil, errFirst
}

// receive applies what the node sends, in order, until it sends no more.
func receive(stream *attachStream, a *process.Attachment) error {
	for {
		r, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch kind := r.Kind.(type) {
		case *guestv1.AttachRequest_Ack:
			err = a.Acknowledge(kind.Ack.Offset)
		case *guestv1.AttachRequest_Stdin:
			err = a.Stdin(kind.Stdin.Offset, kind.Stdin.Data)
		case *guestv1.AttachRequest_StdinClose:
			err = a.CloseStdin(kind.StdinClose.Offset)
		case *guestv1.AttachRequest_Resize:
			err = a.Resize(kind.Resize.Cols, kind.Resize.Rows)
		default:
			err = errKind
		}
		if err != nil {
			return err
		}
	}
}
