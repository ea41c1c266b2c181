package host

import (
	"context"
	"errors"
	"io"

	guestv1 "space/guest/gen/guest/v1"

	"connectrpc.com/connect"
)

// Stream is one Attach call.
type Stream = connect.BidiStreamForClient[guestv1.AttachRequest, guestv1.AttachResponse]

// Result is a command's whole life as one stream told it.
type Result struct {
	Started *guestv1.Started
	Failed  *guestv1.StartFailed
	Stdout  []byte
	Stderr  []byte
	Pty     []byte
	Exit    *guestv1.Exit
	Bytes   int64
}

// Run starts a process and follows it to its end, acknowledging every byte. With discard, output is only counted.
func (s *Session) Run(ctx context.Context, start *guestv1.Start, stdin []byte, discard bool) (*Result, error) {
	stream := s.Client.Attach(ctx)
	defer stream.CloseResponse()
	if err := stream.Send(&guestv1.AttachRequest{Kind: &guestv1.AttachRequest_Start{Start: start}}); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if start.StdinPipe {
		go func() {
			for at := 0; at < len(stdin); at += 64 << 10 {
				_ = stream.Send(&guestv1.AttachRequest{Kind: &guestv1.AttachRequest_Stdin{Stdin: &guestv1.Stdin{
					Offset: int64(at), Data: stdin[at:min(len(stdin), at+64<<10)]}}})
			}
			_ = stream.Send(&guestv1.AttachRequest{Kind: &guestv1.AttachRequest_StdinClose{StdinClose: &guestv1.StdinClose{Offset: int64(len(stdin))}}})
		}()
	}
	result := &Result{}
	return result, s.Follow(stream, result, discard)
}

// Follow takes in a stream's messages until the exit or a failed start.
func (s *Session) Follow(stream *Stream, result *Result, discard bool) error {
	for {
		m, err := stream.Receive()
		if err != nil {
			return err
		}
		switch kind := m.Kind.(type) {
		case *guestv1.AttachResponse_Started:
			result.Started = kind.Started
			result.Bytes = max(result.Bytes, kind.Started.AcknowledgedOffset)
		case *guestv1.AttachResponse_StartFailed:
			result.Failed = kind.StartFailed
			return nil
		case *guestv1.AttachResponse_Output:
			if err := result.take(kind.Output, discard); err != nil {
				return err
			}
			_ = stream.Send(&guestv1.AttachRequest{Kind: &guestv1.AttachRequest_Ack{Ack: &guestv1.Ack{Offset: result.Bytes}}})
		case *guestv1.AttachResponse_Exited:
			result.Exit = kind.Exited
			_ = stream.CloseRequest()
			return nil
		}
	}
}

func (r *Result) take(o *guestv1.Output, discard bool) error {
	if o.Offset != r.Bytes {
		return errors.New("output has a gap")
	}
	r.Bytes += int64(len(o.Data))
	if discard {
		return nil
	}
	switch o.Stream {
	case guestv1.Output_STREAM_STDOUT:
		r.Stdout = append(r.Stdout, o.Data...)
	case guestv1.Output_STREAM_STDERR:
		r.Stderr = append(r.Stderr, o.Data...)
	case guestv1.Output_STREAM_PTY:
		r.Pty = append(r.Pty, o.Data...)
	}
	return nil
}
