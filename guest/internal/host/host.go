// Package host is the node's end of the guest channel in Go, for this module's tests: the handshake, then Connect.
package host

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	guestv1 "space/guest/gen/guest/v1"
	"space/guest/gen/guest/v1/guestv1connect"
	"space/guest/internal/link"

	"connectrpc.com/connect"
	"golang.org/x/net/http2"
	"google.golang.org/protobuf/proto"
)

// helloInterval is how often a HELLO is repeated until it is echoed.
const helloInterval = 50 * time.Millisecond

// Session is an agreed session with the information its ECHO carried.
type Session struct {
	Hello  *guestv1.InfoResponse
	Client guestv1connect.GuestServiceClient
	Conn   net.Conn
	// Echoes counts the ECHO frames that were skipped as repeated.
	Echoes int
}

// Open greets the agent with the prefix and returns a session, or an error at the deadline of ctx.
func Open(ctx context.Context, conn net.Conn, prefix link.Prefix) (*Session, error) {
	var nonce link.Nonce
	if _, err := rand.Read(nonce[:]); err != nil {
		return nil, err
	}
	hello := append(append(append([]byte{}, prefix[:]...), 'H'), nonce[:]...)
	echo := append(append(append([]byte{}, prefix[:]...), 'E'), nonce[:]...)
	var echoed atomic.Bool
	greeted := make(chan struct{})
	go func() {
		defer close(greeted)
		for !echoed.Load() && ctx.Err() == nil {
			if _, err := conn.Write(hello); err != nil {
				return
			}
			time.Sleep(helloInterval)
		}
	}()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetReadDeadline(deadline)
		defer conn.SetReadDeadline(time.Time{})
	}
	r := bufio.NewReaderSize(conn, 64<<10)
	payload, err := findEcho(r, echo)
	echoed.Store(true)
	if err != nil {
		return nil, err
	}
	<-greeted
	info := &guestv1.InfoResponse{}
	if err := proto.Unmarshal(payload, info); err != nil {
		return nil, err
	}
	frame := append(append(append([]byte{}, prefix[:]...), 'G'), nonce[:]...)
	if _, err := conn.Write(frame); err != nil {
		return nil, err
	}
	s := &Session{Hello: info, Conn: conn}
	for {
		start, err := r.Peek(1)
		if err != nil {
			return nil, err
		}
		if start[0] != prefix[0] {
			break
		}
		start, err = r.Peek(len(echo))
		if err != nil || !bytes.Equal(start, echo) {
			break
		}
		if _, err := findEcho(r, echo); err != nil {
			return nil, err
		}
		s.Echoes++
	}
	s.Client = client(&bufferedConn{Conn: conn, reader: r})
	return s, nil
}

// findEcho drops everything before the ECHO and returns what it carries.
func findEcho(r *bufio.Reader, echo []byte) ([]byte, error) {
	window := make([]byte, 0, len(echo))
	for !bytes.Equal(window, echo) {
		b, err := r.ReadByte()
		if err != nil {
			return nil, err
		}
		if len(window) == len(echo) {
			window = append(window[:0], window[1:]...)
		}
		window = append(window, b)
	}
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > link.MaxHelloBytes {
		return nil, errors.New("echo too long")
	}
	payload := make([]byte, n)
	_, err := io.ReadFull(r, payload)
	return payload, err
}

type bufferedConn struct {
	net.Conn
	reader *bufio.Reader
}

func (c *bufferedConn) Read(p []byte) (int, error) { return c.reader.Read(p) }

func client(conn net.Conn) guestv1connect.GuestServiceClient {
	used := false
	transport := &http2.Transport{
		AllowHTTP:                  true,
		MaxReadFrameSize:           256 << 10,
		StrictMaxConcurrentStreams: true,
		DialTLSContext: func(context.Context, string, string, *tls.Config) (net.Conn, error) {
			if used {
				return nil, errors.New("the session has ended")
			}
			used = true
			return conn, nil
		},
	}
	return guestv1connect.NewGuestServiceClient(&http.Client{Transport: transport}, "http://guest.invalid",
		connect.WithAcceptCompression("gzip", nil, nil))
}
