package record

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db/fault"
)

// Chunked says how a large value is cut: ChunkBytes each, the last one less.
type Chunked struct {
	Chunks uint32 `json:"chunks"`
	Bytes  int64  `json:"bytes"`
}

const ChunkBytes = 1 << 20

// ChunksOf says how a value is cut.
func ChunksOf(b []byte) Chunked {
	return Chunked{Chunks: uint32((len(b) + ChunkBytes - 1) / ChunkBytes), Bytes: int64(len(b))}
}

// WriteChunks stores b in chunks, from first on, under what the key of each begins
// with.
func WriteChunks(w pebble.Writer, prefix []byte, first uint32, b []byte) error {
	for i := range ChunksOf(b).Chunks {
		n := min(ChunkBytes, len(b))
		if err := w.Set(binary.BigEndian.AppendUint32(slices.Clip(prefix), first+i), b[:n], nil); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// ReadChunks reads what WriteChunks has stored.
func ReadChunks(r pebble.Reader, prefix []byte, first uint32, c Chunked) ([]byte, error) {
	var b []byte
	for i := range c.Chunks {
		value, closer, err := r.Get(binary.BigEndian.AppendUint32(slices.Clip(prefix), first+i))
		if err != nil {
			return nil, fault.ReadError(err, "chunk %d of %d", i, c.Chunks)
		}
		b = append(b, value...)
		if err := closer.Close(); err != nil {
			return nil, err
		}
	}
	if int64(len(b)) != c.Bytes {
		return nil, fault.Corrupt(fmt.Errorf("%d bytes, %d were written", len(b), c.Bytes), "chunks")
	}
	return b, nil
}

// Checksum returns the CRC-32C in which a stored frame ends, from its last chunk, or the
// last two.
func Checksum(r pebble.Reader, prefix []byte, first uint32, c Chunked) (string, error) {
	var tail []byte
	for i := c.Chunks; i > 0 && len(tail) < 4; i-- {
		value, closer, err := r.Get(binary.BigEndian.AppendUint32(slices.Clip(prefix), first+i-1))
		if err != nil {
			return "", fault.ReadError(err, "chunk %d of %d", i-1, c.Chunks)
		}
		tail = append(slices.Clone(value[max(0, len(value)-4):]), tail...)
		if err := closer.Close(); err != nil {
			return "", err
		}
	}
	if len(tail) < 4 {
		return "", fault.Corrupt(fmt.Errorf("%d bytes", c.Bytes), "checksum")
	}
	return fmt.Sprintf("%08x", binary.LittleEndian.Uint32(tail[len(tail)-4:])), nil
}
