package db

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/fddhdb/fddhdb/db/fault"
)

// chunked says how a large value is cut: chunkBytes each, the last one less.
type chunked struct {
	Chunks uint32 `json:"chunks"`
	Bytes  int64  `json:"bytes"`
}

const chunkBytes = 1 << 20

// chunkedOf says how a value is cut.
func chunkedOf(b []byte) chunked {
	return chunked{Chunks: uint32((len(b) + chunkBytes - 1) / chunkBytes), Bytes: int64(len(b))}
}

// writeChunks stores b in chunks, from first on, under what the key of each begins
// with.
func writeChunks(w pebble.Writer, prefix []byte, first uint32, b []byte) error {
	for i := range chunkedOf(b).Chunks {
		n := min(chunkBytes, len(b))
		if err := w.Set(binary.BigEndian.AppendUint32(slices.Clip(prefix), first+i), b[:n], nil); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// readChunks reads what writeChunks has stored.
func readChunks(r pebble.Reader, prefix []byte, first uint32, c chunked) ([]byte, error) {
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

// checksum returns the CRC-32C in which a stored frame ends, from its last chunk, or the
// last two.
func checksum(r pebble.Reader, prefix []byte, first uint32, c chunked) (string, error) {
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
