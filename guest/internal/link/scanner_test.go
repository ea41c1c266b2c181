package link

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func frame(prefix Prefix, kind byte, nonce Nonce) []byte {
	return append(append(append([]byte{}, prefix[:]...), kind), nonce[:]...)
}

// scan feeds the stream in pieces of the given sizes and returns the session's bytes and the frames.
func scan(s *scanner, stream []byte, piece func() int, release bool) (data []byte, frames []item) {
	var unread []byte
	for len(stream) > 0 || len(unread) > 0 {
		n := min(piece(), len(stream))
		unread = append(unread, stream[:n]...)
		stream = stream[n:]
		for {
			it, used := s.next(unread)
			unread = unread[used:]
			if it.kind == itemNone {
				break
			}
			if it.kind == itemData {
				data = append(data, it.data...)
			} else {
				frames = append(frames, it)
			}
		}
		if len(unread) > 0 && (release || len(stream) == 0) {
			s.release(unread)
			data = append(data, unread...)
			unread = nil
		}
	}
	return data, frames
}

func TestScannerFindsFramesHoweverTheyAreSplit(t *testing.T) {
	n1, n2 := Nonce{1, 2, 3}, Nonce([]byte("SPACE-GUEST-v1\r\n"))
	p := BootPrefix[:]
	var stream, want []byte
	plain := func(b ...[]byte) {
		for _, x := range b {
			stream, want = append(stream, x...), append(want, x...)
		}
	}
	plain([]byte("abc"), p[:7], []byte("SPACE-SPACE-GUEST"), p, []byte("X"), p[:15])
	stream = append(stream, frame(BootPrefix, 'H', n1)...)
	plain([]byte("S"), p[:1])
	stream = append(stream, frame(BootPrefix, 'G', n2)...)
	stream = append(stream, frame(BootPrefix, 'H', n2)...)
	plain([]byte("tail"), p[:3])
	for size := 1; size < len(stream)+1; size++ {
		data, frames := scan(&scanner{prefix: BootPrefix}, stream, func() int { return size }, false)
		if !bytes.Equal(data, want) || len(frames) != 3 {
			t.Fatalf("pieces of %d: %q %v", size, data, frames)
		}
		if frames[0].kind != itemHello || frames[0].nonce != n1 || frames[1].kind != itemGo || frames[1].nonce != n2 || frames[2].nonce != n2 {
			t.Fatal(frames)
		}
	}
}

func TestScannerRecognisesAFrameWhoseStartWasReleased(t *testing.T) {
	stream := append(append([]byte("xy"), frame(BootPrefix, 'H', Nonce{9})...), "after"...)
	for size := 1; size < frameSize; size++ {
		data, frames := scan(&scanner{prefix: BootPrefix}, stream, func() int { return size }, true)
		if len(frames) != 1 || frames[0].nonce != (Nonce{9}) || !bytes.HasSuffix(data, []byte("after")) {
			t.Fatalf("pieces of %d: %q %v", size, data, frames)
		}
	}
}

func TestScannerLosesAndInventsNoByte(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	prefix := Prefix(bytes.Repeat([]byte{7}, PrefixSize)) // overlaps itself
	for range 2000 {
		stream := make([]byte, r.IntN(200))
		for i := range stream {
			stream[i] = byte(6 + r.IntN(2))
			if r.IntN(9) > 0 {
				stream[i] = 7
			}
		}
		data, frames := scan(&scanner{prefix: prefix}, stream, func() int { return 1 + r.IntN(40) }, r.IntN(2) == 0)
		if len(frames) != 0 || !bytes.Equal(data, stream) {
			t.Fatalf("%v became %v %v", stream, data, frames)
		}
	}
}

func FuzzScanner(f *testing.F) {
	f.Add([]byte("SPACE-GUEST-v1\r\nH0123456789abcdef"), uint8(3))
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		data, frames := scan(&scanner{prefix: BootPrefix}, stream, func() int { return int(size) + 1 }, false)
		if len(data)+len(frames)*frameSize != len(stream) {
			t.Fatal("a byte was lost or invented")
		}
	})
}
