package process

import (
	"sort"
	"sync"
)

// Limits of one process's output that the node has not acknowledged.
const (
	// MaxUnacknowledgedBytes is where the agent stops reading the pipes, so that the process waits.
	MaxUnacknowledgedBytes = 1 << 20
	// MaxMessageBytes bounds one Output message.
	MaxMessageBytes = 256 << 10
	// maxSegments bounds the changes between stdout and stderr that are kept; the limit acts like the one in bytes.
	maxSegments = 8192

	smallBlockBytes = 4 << 10
	largeBlockBytes = 256 << 10
)

// output keeps the bytes between the acknowledged offset and the end, with the stream each came from. The offsets of
// all streams of a process are counted together. Not safe for two goroutines.
type output struct {
	acknowledged int64
	end          int64
	blocks       []block
	segments     []segment
}

// block holds bytes from offset on; its buffer never moves, so a read goes straight into it.
type block struct {
	offset int64
	buffer []byte
	used   int
}

// segment says that bytes from offset on, up to the next segment, came from the stream.
type segment struct {
	offset int64
	stream Stream
}

var largeBlocks = sync.Pool{New: func() any { b := make([]byte, largeBlockBytes); return &b }}

// space returns where the next bytes go; empty when the limit is reached.
func (o *output) space() []byte {
	free := MaxUnacknowledgedBytes - (o.end - o.acknowledged)
	if free <= 0 || len(o.segments) >= maxSegments {
		return nil
	}
	last := len(o.blocks) - 1
	if last < 0 || o.blocks[last].used == len(o.blocks[last].buffer) {
		o.grow()
		last = len(o.blocks) - 1
	}
	b := &o.blocks[last]
	room := b.buffer[b.used:]
	return room[:min(int64(len(room)), free)]
}

// grow adds a block: small for a process that says little, large from the third on.
func (o *output) grow() {
	size := smallBlockBytes
	if last := len(o.blocks) - 1; last >= 0 {
		size = min(len(o.blocks[last].buffer)*8, largeBlockBytes)
	} else if o.end > 0 {
		size = largeBlockBytes / 8
	}
	var buffer []byte
	if size == largeBlockBytes {
		buffer = *largeBlocks.Get().(*[]byte)
	} else {
		buffer = make([]byte, size)
	}
	o.blocks = append(o.blocks, block{offset: o.end, buffer: buffer})
}

// commit counts n bytes that were read into space.
func (o *output) commit(stream Stream, n int) {
	if n == 0 {
		return
	}
	if last := len(o.segments) - 1; last < 0 || o.segments[last].stream != stream {
		o.segments = append(o.segments, segment{offset: o.end, stream: stream})
	}
	o.blocks[len(o.blocks)-1].used += n
	o.end += int64(n)
}

// acknowledge forgets every byte below the offset.
func (o *output) acknowledge(offset int64) {
	offset = min(offset, o.end)
	if offset <= o.acknowledged {
		return
	}
	o.acknowledged = offset
	drop := 0
	for drop < len(o.blocks) && o.blocks[drop].offset+int64(o.blocks[drop].used) <= offset {
		b := o.blocks[drop]
		if b.used < len(b.buffer) && len(b.buffer) < largeBlockBytes {
			break // only the last one has room, and it is small: the next bytes go there
		}
		if len(b.buffer) == largeBlockBytes {
			largeBlocks.Put(&b.buffer)
		}
		drop++
	}
	o.blocks = append(o.blocks[:0], o.blocks[drop:]...)
	gone := 0
	for gone+1 < len(o.segments) && o.segments[gone+1].offset <= offset {
		gone++
	}
	if offset == o.end {
		gone = len(o.segments)
	}
	o.segments = append(o.segments[:0], o.segments[gone:]...)
}

// take copies bytes of one stream from the offset on, at most MaxMessageBytes, into the buffer, which it may grow.
func (o *output) take(offset int64, into []byte) (Stream, []byte) {
	into = into[:0]
	i := sort.Search(len(o.segments), func(i int) bool { return o.segments[i].offset > offset }) - 1
	limit := min(o.end, offset+MaxMessageBytes)
	if i+1 < len(o.segments) {
		limit = min(limit, o.segments[i+1].offset)
	}
	if want := int(limit - offset); cap(into) < want {
		into = make([]byte, 0, want)
	}
	for _, b := range o.blocks {
		if end := b.offset + int64(b.used); end > offset && offset < limit {
			from := offset - b.offset
			to := min(int64(b.used), limit-b.offset)
			into = append(into, b.buffer[from:to]...)
			offset = b.offset + to
		}
	}
	return o.segments[i].stream, into
}
