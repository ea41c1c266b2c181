package process

import (
	"errors"

	guestv1 "space/guest/gen/guest/v1"
)

var (
	// ErrSuperseded ends a stream because another has joined the process.
	ErrSuperseded = errors.New("another stream has joined")
	// ErrBeyondEnd refuses a join or an acknowledgement behind what the process has written.
	ErrBeyondEnd = errors.New("the offset is beyond the output")
	// ErrNoTerminal refuses a resize of a process without a terminal.
	ErrNoTerminal = errors.New("the process has no terminal")
)

// Attachment is the one stream that carries a process's output. A later one takes its place.
type Attachment struct {
	Process *Process
	// Wake is signalled when Next may have more to say.
	Wake chan struct{}
	// Superseded is closed when another attachment has taken over.
	Superseded chan struct{}

	cursor       int64
	started      bool
	toldWritten  int64
	toldBroken   bool
	done         bool
	buffer       []byte
	output       guestv1.Output
	outputAnswer guestv1.AttachResponse
}

// Attach takes over the process's output from the offset on. Everything below it counts as acknowledged.
func (p *Process) Attach(from int64) (*Attachment, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if from > p.output.end || from < 0 {
		return nil, ErrBeyondEnd
	}
	if p.attached != nil {
		close(p.attached.Superseded)
	}
	p.acknowledge(from)
	a := &Attachment{
		Process: p, Wake: make(chan struct{}, 1), Superseded: make(chan struct{}), cursor: p.output.acknowledged,
	}
	a.outputAnswer.Kind = &guestv1.AttachResponse_Output{Output: &a.output}
	p.attached = a
	return a, nil
}

// Detach lets go of the process; its output waits for the next attachment.
func (a *Attachment) Detach() {
	a.Process.mu.Lock()
	defer a.Process.mu.Unlock()
	if a.Process.attached == a {
		a.Process.attached = nil
	}
}

// Next returns what to send now, or nil when there is nothing until Wake. The answer is valid until the next call.
func (a *Attachment) Next() (answer *guestv1.AttachResponse, last bool) {
	p := a.Process
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.attached != a || a.done {
		return nil, false
	}
	if !a.started {
		a.started = true
		return &guestv1.AttachResponse{Kind: &guestv1.AttachResponse_Started{Started: &guestv1.Started{
			Pid: int32(p.Pid), StartedAtUnixMs: p.StartedAtMs, AcknowledgedOffset: p.output.acknowledged,
		}}}, false
	}
	if s := p.stdin; s != nil && (s.written != a.toldWritten || s.broken != a.toldBroken) {
		a.toldWritten, a.toldBroken = s.written, s.broken
		return &guestv1.AttachResponse{Kind: &guestv1.AttachResponse_StdinState{StdinState: &guestv1.StdinState{
			NextOffset: s.written, BrokenPipe: s.broken,
		}}}, false
	}
	if a.cursor < p.output.end {
		a.output.Offset = a.cursor
		a.output.Stream, a.buffer = p.output.take(a.cursor, a.buffer)
		a.output.Data = a.buffer
		a.cursor += int64(len(a.buffer))
		return &a.outputAnswer, false
	}
	if p.exit != nil {
		a.done = true
		return &guestv1.AttachResponse{Kind: &guestv1.AttachResponse_Exited{Exited: p.exit}}, true
	}
	return nil, false
}

// Acknowledge tells that every byte below the offset is recorded.
func (a *Attachment) Acknowledge(offset int64) error {
	a.Process.mu.Lock()
	defer a.Process.mu.Unlock()
	if a.Process.attached != a {
		return ErrSuperseded
	}
	if offset > a.cursor {
		return ErrBeyondEnd
	}
	a.Process.acknowledge(offset)
	return nil
}

// Stdin gives bytes to the process.
func (a *Attachment) Stdin(offset int64, data []byte) error {
	return a.onStdin(func(s *stdin) error { return s.give(offset, data) })
}

// CloseStdin closes the process's stdin behind the offset.
func (a *Attachment) CloseStdin(offset int64) error {
	return a.onStdin(func(s *stdin) error { return s.closeBehind(offset) })
}

func (a *Attachment) onStdin(do func(*stdin) error) error {
	a.Process.mu.Lock()
	defer a.Process.mu.Unlock()
	if a.Process.attached != a {
		return ErrSuperseded
	}
	if a.Process.stdin == nil {
		return ErrNoStdin
	}
	return do(a.Process.stdin)
}

// Resize changes the size of the process's terminal.
func (a *Attachment) Resize(cols, rows uint32) error {
	a.Process.mu.Lock()
	defer a.Process.mu.Unlock()
	if a.Process.terminal < 0 {
		return ErrNoTerminal
	}
	if cols > maxTerminalCells || rows > maxTerminalCells {
		return ErrNoTerminal
	}
	if len(a.Process.sources) > 0 && !a.Process.sources[0].closed {
		return resize(a.Process.terminal, cols, rows)
	}
	return nil
}

func (a *Attachment) signal() {
	select {
	case a.Wake <- struct{}{}:
	default:
	}
}
