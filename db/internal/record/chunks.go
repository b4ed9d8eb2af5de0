package record

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db/fault"
)

// Chunked says how a large value, such as a model, is cut into records of its own. It is
// stored in the descriptor of the value's owner: the chunks alone could not tell that the last
// ones are missing. The zero value is a value that is not stored.
type Chunked struct {
	Chunks uint32 `json:"chunks"` // records: Bytes / ChunkBytes, rounded up
	Bytes  int64  `json:"bytes"`  // of all chunks together
}

// ChunkBytes is the length of each chunk but the last. It is part of the stored format.
const ChunkBytes = 1 << 20

// ChunksOf returns how WriteChunks cuts b.
func ChunksOf(b []byte) Chunked {
	return Chunked{Chunks: uint32((len(b) + ChunkBytes - 1) / ChunkBytes), Bytes: int64(len(b))}
}

// WriteChunks stores b in chunks. The key of chunk i is prefix followed by first+i as a u32,
// big-endian; first is 1 where number 0 is the descriptor (revisions), else 0. It does not
// delete chunks of a longer value that was there before.
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

// ReadChunks returns the value that WriteChunks has stored, as a slice of the caller's own. A
// chunk that is missing, or another length than c.Bytes, is an ErrCorrupt. Memory is taken as
// chunks are read, not as c promises: c may be damaged.
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

// Checksum returns the CRC-32C in which a stored frame of package model ends, as eight
// hexadecimal digits. It reads the last chunk only, or the last two where the sum lies across
// their border, and compares it with nothing.
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
