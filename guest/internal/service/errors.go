package service

import (
	"errors"

	"space/guest/internal/process"
	"space/guest/internal/workload"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"
)

var (
	errSignal   = errors.New("signal: 1 to 64")
	errPrefix   = errors.New("prefix: 16 bytes")
	errFirst    = errors.New("the first request is start or join")
	errKind     = errors.New("a request of no known kind")
	errInFlight = errors.New("a start in flight did not end in time")
)

func signalOf(n int32) unix.Signal { return unix.Signal(n) }

// toConnect gives each failure its code; guest/PROTOCOL.md lists them.
func toConnect(err error) error {
	code := connect.CodeInternal
	var invalid *process.InvalidStart
	switch {
	case errors.As(err, &invalid), errors.Is(err, process.ErrNoTerminal), errors.Is(err, process.ErrNoStdin), errors.Is(err, errFirst), errors.Is(err, errKind):
		code = connect.CodeInvalidArgument
	case errors.Is(err, process.ErrUnknownProcess):
		code = connect.CodeNotFound
	case errors.Is(err, process.ErrSuperseded):
		code = connect.CodeAborted
	case errors.Is(err, process.ErrBeyondEnd):
		code = connect.CodeOutOfRange
	case errors.Is(err, process.ErrStdinFull):
		code = connect.CodeResourceExhausted
	case errors.Is(err, process.ErrStdinGap), errors.Is(err, process.ErrFrozen):
		code = connect.CodeFailedPrecondition
	case errors.Is(err, workload.ErrCgroupFreeze), errors.Is(err, workload.ErrFilesystemFreeze), errors.Is(err, errInFlight):
		code = connect.CodeDeadlineExceeded
	}
	return connect.NewError(code, err)
}
