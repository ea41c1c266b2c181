// Package link is the agent's end of the guest channel: it agrees on sessions by the handshake of guest/PROTOCOL.md
// and serves HTTP/2 inside them.
//
//	port ──▶ scanner ──▶ session.Read ──▶ HTTP/2      a HELLO at any time ends the session
//	port ◀── write lock, dead mark ◀── session.Write ◀── HTTP/2
//
// L1 No byte of a dead session follows an ECHO: every write takes the lock and then looks at the mark.
// L2 A HELLO is noticed inside a session too: the session reads through the scanner, and HTTP/2 always reads.
// L3 A session starts only on a GO with the newest nonce.
package link

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	readBufferBytes = 64 << 10
	// holdTimeout is how long bytes that could begin a frame are kept from the session.
	holdTimeout = 10 * time.Millisecond
	// echoTimeout bounds the write of an ECHO to a host that has gone again.
	echoTimeout = time.Second
	// absentPause is how often a port without a host is looked at, should the news of one be missed.
	absentPause = time.Second
	// MaxHelloBytes bounds the information in an ECHO.
	MaxHelloBytes = 1 << 20
)

// Port is the raw channel: a virtio-serial port or a vsock connection.
type Port interface {
	io.Closer
	io.ReadWriter
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
	// WaitForHost is called when Read has found no host at the other end; it returns when one may have come, or after
	// the time.
	WaitForHost(time.Duration)
}

// Link agrees on sessions over one port, one at a time.
type Link struct {
	port Port
	info func() []byte

	// Only the goroutine that reads uses these: Serve between sessions, the session's reader inside one.
	buffer        []byte
	start, end    int
	scanner       scanner
	newest        Nonce
	greeted       bool
	pendingPrefix chan Prefix

	writing sync.Mutex
}

// New prepares a link whose first frames have the prefix; info gives what an ECHO carries.
func New(port Port, prefix Prefix, info func() []byte) *Link {
	return &Link{
		port: port, info: info, buffer: make([]byte, readBufferBytes),
		scanner: scanner{prefix: prefix}, pendingPrefix: make(chan Prefix, 1),
	}
}

// SetPrefix makes the secret the prefix of every later frame.
func (l *Link) SetPrefix(p Prefix) {
	select {
	case <-l.pendingPrefix:
	default:
	}
	l.pendingPrefix <- p
}

// Prefix is the one the next frame must have. It is asked when Serve has returned.
func (l *Link) Prefix() Prefix {
	l.takePrefix()
	return l.scanner.prefix
}

// Serve agrees on one session after the other and hands each to serve, until the port fails for good.
func (l *Link) Serve(serve func(net.Conn)) error {
	for {
		it, err := l.next(true)
		if err != nil {
			return err
		}
		switch it.kind {
		case itemHello:
			if err := l.echo(it.nonce); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				return err
			}
		case itemGo:
			if l.greeted && it.nonce == l.newest {
				l.greeted = false
				s := &session{link: l}
				l.begin()
				serve(s)
				s.end()
			}
		}
	}
}

// echo answers a HELLO. Whatever session there was is dead by now.
func (l *Link) echo(nonce Nonce) error {
	l.newest, l.greeted = nonce, true
	info := l.info()
	if len(info) > MaxHelloBytes {
		info = nil
	}
	frame := append([]byte{}, l.scanner.prefix[:]...)
	frame = append(frame, 'E')
	frame = append(frame, nonce[:]...)
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(info)))
	frame = append(frame, info...)
	l.writing.Lock()
	defer l.writing.Unlock()
	_ = l.port.SetWriteDeadline(time.Now().Add(echoTimeout))
	_, err := l.port.Write(frame)
	_ = l.port.SetWriteDeadline(time.Time{})
	return err
}

// begin gives the new session a port without deadlines.
func (l *Link) begin() {
	l.writing.Lock()
	defer l.writing.Unlock()
	_ = l.port.SetReadDeadline(time.Time{})
	_ = l.port.SetWriteDeadline(time.Time{})
}

// next reads until there is an item. Between sessions data is dropped by the caller; inside one, held bytes are
// released after holdTimeout.
func (l *Link) next(between bool) (item, error) {
	for {
		l.takePrefix()
		unread := l.buffer[l.start:l.end]
		it, n := l.scanner.next(unread)
		if it.kind != itemNone {
			l.start += n
			return it, nil
		}
		if l.start > 0 {
			copy(l.buffer, unread)
			l.start, l.end = 0, len(unread)
		}
		held := l.end > 0 && !between
		if held {
			_ = l.port.SetReadDeadline(time.Now().Add(holdTimeout))
		}
		n, err := l.port.Read(l.buffer[l.end:])
		if held {
			_ = l.port.SetReadDeadline(time.Time{})
		}
		switch {
		case n > 0:
			l.end += n
		case held && errors.Is(err, os.ErrDeadlineExceeded):
			data := l.buffer[:l.end]
			l.scanner.release(data)
			l.start, l.end = 0, 0
			return item{kind: itemData, data: data}, nil
		case err == nil || errors.Is(err, io.EOF):
			l.port.WaitForHost(absentPause)
		default:
			return item{}, err
		}
	}
}

func (l *Link) takePrefix() {
	select {
	case p := <-l.pendingPrefix:
		l.scanner = scanner{prefix: p}
	default:
	}
}
