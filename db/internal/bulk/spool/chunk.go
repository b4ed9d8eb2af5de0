package spool

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// Each part of a chunk has a checksum of its own, so that a commit can read records without vectors,
// and resume can check keys and codes. Nothing refers from one chunk to another but by numbers: of
// rows, items and labels that came before. So a chunk is sound only behind those chunks.

// A chunk holds a few megabytes of items as they are written to a file: a header, and parts that
// can each be read without the others. docs/FORMAT.md describes the bytes. The goroutine of the
// Spool fills it, the writer's writes it: see writer.free.
type chunk struct {
	rows  uint64 // before the chunk, items and skipped ones
	start uint64 // items before the chunk
	items uint32
	skips uint32 // skipped rows
	bytes uint64 // an estimate of the memory of the items, which Spool.Put counts

	parts [chunkParts][]byte
	plain bool // the items have nothing but keys and codes: records and vectors are empty
}

// Parts of a chunk.
const (
	chunkLabels  = iota // names of labels that no chunk before it names
	chunkKeys           // keys, and which modalities the items have
	chunkCodes          // of a codes-only collection
	chunkSkips          // which rows are skipped, and why
	chunkRecords        // labels, fields and payload of the items
	chunkVectors        // features of the items
	chunkParts
)

// Sizes of a chunk, and its first bytes.
const (
	chunkMagic       = 0x46494d43 // "CMIF"
	chunkHeaderBytes = 4 + 4 + 4*8 + chunkParts*8

	chunkBytes = 4 << 20 // a chunk of so many bytes is full
	chunkItems = 1 << 14 // a chunk has no more items
)

// reset empties the chunk, which is to follow so many rows and items. It keeps the memory.
func (c *chunk) reset(rows, start uint64) {
	for i := range c.parts {
		c.parts[i] = c.parts[i][:0]
	}
	c.rows, c.start, c.items, c.skips, c.bytes, c.plain = rows, start, 0, 0, 0, true
}

// size returns how many bytes the parts take.
func (c *chunk) size() (n int) {
	for _, part := range c.parts {
		n += len(part)
	}
	return n
}

// full reports whether the chunk has so many bytes, or as many items as it can have.
func (c *chunk) full(bytes int) bool { return c.items == chunkItems || c.size() >= bytes }

// addLabel adds the name of a label.
func (c *chunk) addLabel(name string) {
	c.parts[chunkLabels] = appendString(c.parts[chunkLabels], name)
}

// addSkip adds a skipped row with the reason.
func (c *chunk) addSkip(why string) {
	at := uint64(c.items) + uint64(c.skips)
	c.parts[chunkSkips] = appendString(binary.AppendUvarint(c.parts[chunkSkips], at), why)
	c.skips++
}

// add adds an item. bits is the length of its code, 0 if the collection is not codes-only, and
// labels are the numbers of its labels, ascending.
func (c *chunk) add(it *record.Item, bits int, labels []uint32) error {
	if c.plain && !it.IsPlain() { // the items before it have empty records and vectors
		c.plain = false
		for range c.items {
			c.parts[chunkRecords] = append(c.parts[chunkRecords], 0, 0, 0, 0)
			c.parts[chunkVectors] = append(c.parts[chunkVectors], 0)
		}
	}
	present := 0
	for _, x := range it.Vectors {
		if x.Present() {
			present++
		}
	}
	keys := binary.AppendUvarint(appendString(c.parts[chunkKeys], it.Key), uint64(present))
	if bits > 0 {
		c.parts[chunkCodes] = it.Code.AppendBytes(c.parts[chunkCodes], bits)
	}
	if !c.plain {
		vectors := binary.AppendUvarint(c.parts[chunkVectors], uint64(present))
		for t, x := range it.Vectors {
			if !x.Present() {
				continue
			}
			keys = binary.AppendUvarint(keys, uint64(t))
			vectors = binary.AppendUvarint(vectors, uint64(t))
			// The size stands before the vector, and is known only after it: leave four bytes for it.
			at := len(vectors)
			vectors = record.AppendVector(append(vectors, 0, 0, 0, 0), x)
			putSize(vectors, at)
		}
		c.parts[chunkVectors] = vectors
		at := len(c.parts[chunkRecords])
		records := append(c.parts[chunkRecords], 0, 0, 0, 0)
		if len(it.Labels)+len(it.Fields)+len(it.Payload) > 0 {
			rec := codec.ItemRecord{Labels: labels, Fields: it.Fields, Payload: it.Payload}
			var err error
			if records, err = rec.Append(records); err != nil {
				return err
			}
		}
		putSize(records, at)
		c.parts[chunkRecords] = records
	}
	c.parts[chunkKeys] = keys
	c.items++
	return nil
}

// appendString appends the length of s and s.
func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// putSize writes into the four bytes of b at offset at how many bytes follow them.
func putSize(b []byte, at int) {
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
}

// header returns the header of the chunk.
func (c *chunk) header() []byte {
	h := binary.LittleEndian.AppendUint32(make([]byte, 0, chunkHeaderBytes), chunkMagic)
	h = append(h, 0, 0, 0, 0) // the sum
	h = binary.LittleEndian.AppendUint64(h, c.rows)
	h = binary.LittleEndian.AppendUint64(h, c.start)
	h = binary.LittleEndian.AppendUint32(h, c.items)
	h = binary.LittleEndian.AppendUint32(h, c.skips)
	h = binary.LittleEndian.AppendUint64(h, c.bytes)
	for _, part := range c.parts {
		h = binary.LittleEndian.AppendUint32(h, uint32(len(part)))
		h = binary.LittleEndian.AppendUint32(h, crc32.Checksum(part, castagnoli))
	}
	binary.LittleEndian.PutUint32(h[4:], crc32.Checksum(h[8:], castagnoli))
	return h
}
