package process

import (
	"bytes"
	"math/rand/v2"
	"testing"

	guestv1 "space/guest/gen/guest/v1"
)

const (
	stdout = guestv1.Output_STREAM_STDOUT
	stderr = guestv1.Output_STREAM_STDERR
)

func fill(o *output, stream Stream, data []byte) int {
	done := 0
	for done < len(data) {
		into := o.space()
		if len(into) == 0 {
			break
		}
		n := copy(into, data[done:])
		o.commit(stream, n)
		done += n
	}
	return done
}

func TestOutputGivesEveryByteBackInOrderWithItsStream(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var o output
	var all []byte
	var streams []Stream
	cursor, acknowledged := int64(0), int64(0)
	var buffer []byte
	for range 3000 {
		switch r.IntN(3) {
		case 0:
			data := make([]byte, r.IntN(70000))
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			stream := []Stream{stdout, stderr}[r.IntN(2)]
			n := fill(&o, stream, data)
			all = append(all, data[:n]...)
			for range n {
				streams = append(streams, stream)
			}
			if n < len(data) && o.end-o.acknowledged != MaxUnacknowledgedBytes {
				t.Fatal("refused below the limit")
			}
		case 1:
			if cursor == o.end {
				continue
			}
			var stream Stream
			stream, buffer = o.take(cursor, buffer)
			if len(buffer) == 0 || len(buffer) > MaxMessageBytes || !bytes.Equal(buffer, all[cursor:cursor+int64(len(buffer))]) {
				t.Fatal("wrong bytes")
			}
			for i := range buffer {
				if streams[cursor+int64(i)] != stream {
					t.Fatal("wrong stream")
				}
			}
			cursor += int64(len(buffer))
		case 2:
			acknowledged += int64(r.IntN(int(cursor-acknowledged) + 1))
			o.acknowledge(acknowledged)
		}
	}
	if o.end < 10<<20 {
		t.Fatal("too little was tried", o.end)
	}
}

func TestOutputStopsAtTheLimitAndGoesOnBehindIt(t *testing.T) {
	var o output
	if n := fill(&o, stdout, make([]byte, 3<<20)); n != MaxUnacknowledgedBytes {
		t.Fatal(n)
	}
	o.acknowledge(1)
	if n := fill(&o, stdout, make([]byte, 10)); n != 1 {
		t.Fatal(n)
	}
}

func TestOutputBoundsTheChangesOfStream(t *testing.T) {
	var o output
	n := 0
	for ; n < 2*maxSegments; n++ {
		if fill(&o, []Stream{stdout, stderr}[n%2], []byte{1}) == 0 {
			break
		}
	}
	if n != maxSegments {
		t.Fatal(n)
	}
	o.acknowledge(o.end)
	if fill(&o, stdout, []byte{1}) != 1 {
		t.Fatal("it does not go on")
	}
}
