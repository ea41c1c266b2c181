package link

import "bytes"

// Sizes of guest/PROTOCOL.md.
const (
	PrefixSize = 16
	NonceSize  = 16
	frameSize  = PrefixSize + 1 + NonceSize
)

// Prefix announces a handshake frame.
type Prefix [PrefixSize]byte

// Nonce names one handshake.
type Nonce [NonceSize]byte

// BootPrefix is the prefix of an agent that has not been given a secret.
var BootPrefix = Prefix([]byte("SPACE-GUEST-v1\r\n"))

type itemKind int

const (
	// itemNone: more bytes are needed to say anything.
	itemNone itemKind = iota
	itemData
	itemHello
	itemGo
)

type item struct {
	kind  itemKind
	data  []byte
	nonce Nonce
}

// scanner parts the raw stream into bytes of a session and handshake frames. It never copies: items point into the
// bytes it was given.
//
// Bytes that could be the start of a frame are held back. release gives them to the session when nothing follows them;
// a frame whose beginning was released is still recognised, since released counts how far it had come.
type scanner struct {
	prefix   Prefix
	released []byte
}

// next looks at the unread bytes and returns the first item with the number of bytes it covers.
func (s *scanner) next(unread []byte) (item, int) {
	if len(s.released) > 0 {
		return s.nextReleased(unread)
	}
	if len(unread) == 0 {
		return item{}, 0
	}
	at := bytes.Index(unread, s.prefix[:])
	if at < 0 {
		if free := len(unread) - s.overlap(unread); free > 0 {
			return item{kind: itemData, data: unread[:free]}, free
		}
		return item{}, 0
	}
	if at > 0 {
		return item{kind: itemData, data: unread[:at]}, at
	}
	if len(unread) > PrefixSize && frameKind(unread[PrefixSize]) == itemNone {
		return item{kind: itemData, data: unread[:1]}, 1
	}
	if len(unread) < frameSize {
		return item{}, 0
	}
	return item{kind: frameKind(unread[PrefixSize]), nonce: Nonce(unread[PrefixSize+1 : frameSize])}, frameSize
}

// release marks held bytes as given to the session.
func (s *scanner) release(held []byte) { s.released = append(s.released, held...) }

// nextReleased continues a frame whose beginning the session has already got. A session is never given a byte twice.
func (s *scanner) nextReleased(unread []byte) (item, int) {
	if len(unread) == 0 {
		return item{}, 0
	}
	before := len(s.released)
	joined := append(s.released, unread[:min(len(unread), frameSize)]...)
	s.released = s.released[:0]
	for start := 0; start < before; start++ {
		rest := joined[start:]
		if !s.begins(rest) {
			continue
		}
		if len(rest) >= frameSize {
			kind := frameKind(rest[PrefixSize])
			return item{kind: kind, nonce: Nonce(rest[PrefixSize+1 : frameSize])}, start + frameSize - before
		}
		s.released = append(s.released, joined[start:before]...)
		return item{}, 0
	}
	return s.next(unread)
}

// begins says whether the bytes are the start of a frame, or a whole one.
func (s *scanner) begins(b []byte) bool {
	n := min(len(b), PrefixSize)
	return bytes.Equal(b[:n], s.prefix[:n]) && (len(b) <= PrefixSize || frameKind(b[PrefixSize]) != itemNone)
}

// overlap is the length of the longest end of b that is a start of the prefix.
func (s *scanner) overlap(b []byte) int {
	for n := min(len(b), PrefixSize-1); n > 0; n-- {
		if bytes.Equal(b[len(b)-n:], s.prefix[:n]) {
			return n
		}
	}
	return 0
}

func frameKind(b byte) itemKind {
	switch b {
	case 'H':
		return itemHello
	case 'G':
		return itemGo
	}
	return itemNone
}
