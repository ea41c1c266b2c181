package link_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	guestv1 "space/guest/gen/guest/v1"
	"space/guest/gen/guest/v1/guestv1connect"
	"space/guest/internal/host"
	"space/guest/internal/link"

	"connectrpc.com/connect"
	"golang.org/x/net/http2"
)

// port stands for the virtio-serial port: it outlives the connections of its host, and without one a read ends at once.
type port struct {
	mu      sync.Mutex
	conn    net.Conn
	arrived chan struct{}
	rd, wd  time.Time
}

func (p *port) attach(c net.Conn) {
	p.mu.Lock()
	if p.conn != nil {
		p.conn.Close() // the port has one host at a time
	}
	p.conn = c
	_ = c.SetReadDeadline(p.rd)
	_ = c.SetWriteDeadline(p.wd)
	p.mu.Unlock()
	select {
	case p.arrived <- struct{}{}:
	default:
	}
}

func (p *port) current() net.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn
}

func (p *port) Read(b []byte) (int, error) {
	c := p.current()
	if c == nil {
		return 0, io.EOF
	}
	n, err := c.Read(b)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

func (p *port) Write(b []byte) (int, error) {
	for {
		c := p.current()
		if c != nil {
			n, err := c.Write(b)
			if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				return n, err
			}
		}
		p.mu.Lock()
		over := !p.wd.IsZero() && time.Now().After(p.wd)
		p.mu.Unlock()
		if over {
			return 0, os.ErrDeadlineExceeded
		}
		time.Sleep(time.Millisecond)
	}
}

func (p *port) SetReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rd = t
	if p.conn != nil {
		_ = p.conn.SetReadDeadline(t)
	}
	return nil
}

func (p *port) SetWriteDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wd = t
	if p.conn != nil {
		_ = p.conn.SetWriteDeadline(t)
	}
	return nil
}

func (p *port) Close() error { return nil }

func (p *port) WaitForHost(limit time.Duration) {
	select {
	case <-p.arrived:
	case <-time.After(min(limit, 5*time.Millisecond)):
	}
}

type guest struct {
	guestv1connect.UnimplementedGuestServiceHandler
	link *link.Link
}

func (g *guest) Usage(context.Context, *connect.Request[guestv1.UsageRequest]) (*connect.Response[guestv1.UsageResponse], error) {
	return connect.NewResponse(&guestv1.UsageResponse{Processes: 42}), nil
}

func (g *guest) SetLinkSecret(_ context.Context, r *connect.Request[guestv1.SetLinkSecretRequest]) (*connect.Response[guestv1.SetLinkSecretResponse], error) {
	g.link.SetPrefix(link.Prefix(r.Msg.Prefix))
	return connect.NewResponse(&guestv1.SetLinkSecretResponse{}), nil
}

// Attach floods until the session ends.
func (g *guest) Attach(_ context.Context, s *connect.BidiStream[guestv1.AttachRequest, guestv1.AttachResponse]) error {
	data := make([]byte, 200<<10)
	for {
		err := s.Send(&guestv1.AttachResponse{Kind: &guestv1.AttachResponse_Output{Output: &guestv1.Output{Data: data}}})
		if err != nil {
			return err
		}
	}
}

type world struct {
	port   *port
	listen net.Listener
}

func newWorld(t *testing.T) *world {
	t.Helper()
	listen, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listen.Close() })
	w := &world{port: &port{arrived: make(chan struct{}, 1)}, listen: listen}
	g := &guest{}
	g.link = link.New(w.port, link.BootPrefix, func() []byte { return []byte{8, 1} })
	_, handler := guestv1connect.NewGuestServiceHandler(g)
	go func() {
		_ = g.link.Serve(func(c net.Conn) {
			(&http2.Server{}).ServeConn(c, &http2.ServeConnOpts{BaseConfig: &http.Server{}, Handler: handler})
		})
	}()
	return w
}

// connect opens a new connection, as a node that starts anew does.
func (w *world) connect(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", w.listen.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s, err := w.listen.Accept()
	if err != nil {
		t.Fatal(err)
	}
	w.port.attach(s)
	return c
}

func open(t *testing.T, c net.Conn, prefix link.Prefix) *host.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s, err := host.Open(ctx, c, prefix)
	if err != nil {
		t.Fatal(err)
	}
	if s.Hello.ProtocolVersion != 1 {
		t.Fatal(s.Hello)
	}
	return s
}

func usable(t *testing.T, s *host.Session) {
	t.Helper()
	u, err := s.Client.Usage(t.Context(), connect.NewRequest(&guestv1.UsageRequest{}))
	if err != nil || u.Msg.Processes != 42 {
		t.Fatal(u, err)
	}
}

func TestSessionAfterSession(t *testing.T) {
	w := newWorld(t)
	for range 5 {
		c := w.connect(t)
		s := open(t, c, link.BootPrefix)
		usable(t, s)
		c.Close()
	}
}

func TestHelloFreesAWriterThatStalls(t *testing.T) {
	w := newWorld(t)
	for range 3 {
		c := w.connect(t)
		s := open(t, c, link.BootPrefix)
		stream := s.Client.Attach(t.Context())
		if err := stream.Send(&guestv1.AttachRequest{}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Receive(); err != nil {
			t.Fatal(err)
		}
	}
	usable(t, open(t, w.connect(t), link.BootPrefix))
}

func TestHelloInsideASessionStartsANewOneOnTheSameConnection(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	for range 3 {
		// The old session is left in the middle of a frame, without a word.
		client := open(t, &uncloseable{Conn: c}, link.BootPrefix)
		usable(t, client)
		client.Conn.(*uncloseable).detach()
		if _, err := c.Write([]byte{0, 64, 0, 0, 0, 0, 0, 0, 1, 'x'}); err != nil {
			t.Fatal(err)
		}
	}
	usable(t, open(t, c, link.BootPrefix))
}

// uncloseable lets a test take the connection away from an HTTP/2 client that still reads it.
type uncloseable struct {
	net.Conn
	mu   sync.Mutex
	gone bool
}

func (u *uncloseable) Close() error { return nil }

func (u *uncloseable) Read(b []byte) (int, error) {
	n, err := u.Conn.Read(b)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.gone {
		return 0, io.EOF
	}
	return n, err
}

func (u *uncloseable) Write(b []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.gone {
		return 0, io.EOF
	}
	return u.Conn.Write(b)
}

func (u *uncloseable) detach() {
	u.mu.Lock()
	u.gone = true
	u.mu.Unlock()
	_ = u.Conn.SetReadDeadline(time.Unix(1, 0))
	time.Sleep(20 * time.Millisecond)
	_ = u.Conn.SetReadDeadline(time.Time{})
}

func TestOnlyTheSecretOpensTheNextSession(t *testing.T) {
	w := newWorld(t)
	s := open(t, w.connect(t), link.BootPrefix)
	secret := link.Prefix([]byte("0123456789abcdef"))
	if _, err := s.Client.SetLinkSecret(t.Context(), connect.NewRequest(&guestv1.SetLinkSecretRequest{Prefix: secret[:]})); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := host.Open(ctx, w.connect(t), link.BootPrefix); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the old prefix opened a session", err)
	}
	usable(t, open(t, w.connect(t), secret))
}

func TestAGoWithAnOldNonceStartsNothing(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	hello := func(nonce byte) []byte {
		return append(append(append([]byte{}, link.BootPrefix[:]...), 'H'), append([]byte{nonce}, make([]byte, 15)...)...)
	}
	read := func() {
		if _, err := io.ReadFull(c, make([]byte, 33+4+2)); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = c.Write(hello(1))
	read()
	_, _ = c.Write(hello(2))
	read()
	old := hello(1)
	old[16] = 'G'
	_, _ = c.Write(old)
	_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("HTTP/2 began", n, err)
	}
	_ = c.SetReadDeadline(time.Time{})
	usable(t, open(t, c, link.BootPrefix))
}
