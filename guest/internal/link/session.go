package link

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// session is one HTTP/2 connection inside the stream. It ends when a HELLO arrives or HTTP/2 closes it.
type session struct {
	link    *Link
	dead    atomic.Bool
	reading sync.Mutex
	// unread is data the scanner found that Read has not given yet.
	unread []byte
}

// Read gives the session's bytes. The frame that ends the session is left for the link.
func (s *session) Read(p []byte) (int, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	for len(s.unread) == 0 {
		if s.dead.Load() {
			return 0, io.EOF
		}
		it, err := s.link.next(false)
		if err != nil {
			return 0, err
		}
		switch it.kind {
		case itemData:
			s.unread = it.data
		case itemHello:
			s.die()
			_ = s.link.echo(it.nonce)
			return 0, io.EOF
		}
	}
	n := copy(p, s.unread)
	s.unread = s.unread[n:]
	return n, nil
}

// Write passes the one lock that keeps a dead session's bytes from following an ECHO.
func (s *session) Write(p []byte) (int, error) {
	s.link.writing.Lock()
	defer s.link.writing.Unlock()
	if s.dead.Load() {
		return 0, net.ErrClosed
	}
	return s.link.port.Write(p)
}

// Close ends the session but not the port.
func (s *session) Close() error {
	s.die()
	return nil
}

// die marks the session and frees a writer that waits for the port. When it returns, no byte of the session follows.
func (s *session) die() {
	if s.dead.Swap(true) {
		return
	}
	_ = s.link.port.SetWriteDeadline(time.Unix(1, 0))
	s.link.writing.Lock()
	defer s.link.writing.Unlock()
	_ = s.link.port.SetWriteDeadline(time.Time{})
}

// end takes the reading back from HTTP/2, which may still wait in Read.
func (s *session) end() {
	s.die()
	for !s.reading.TryLock() {
		_ = s.link.port.SetReadDeadline(time.Unix(1, 0))
		time.Sleep(time.Millisecond)
	}
	s.reading.Unlock()
	_ = s.link.port.SetReadDeadline(time.Time{})
}

func (s *session) LocalAddr() net.Addr                { return address{} }
func (s *session) RemoteAddr() net.Addr               { return address{} }
func (s *session) SetDeadline(time.Time) error        { return nil }
func (s *session) SetReadDeadline(t time.Time) error  { return nil }
func (s *session) SetWriteDeadline(t time.Time) error { return nil }

type address struct{}

func (address) Network() string { return "guest" }
func (address) String() string  { return "guest" }
