package db

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/model"
)

// A chunk holds items of a staged import, some megabytes of them, as one is written to a
// file: a header, and what its items have, part by part, so that each can be read without
// the others. docs/FORMAT.md describes the bytes.
type chunk struct {
	rows  uint64 // rows before it, items and others
	start uint64 // items before it
	items uint32
	skips uint32
	bytes uint64 // that the items are estimated to take, see checked.bytes

	parts [chunkParts][]byte
	plain bool // nothing but keys and codes so far: no records, no vectors
}

// Parts of a chunk.
const (
	chunkLabels  = iota // names of labels that appear first in it
	chunkKeys           // keys, and which modalities the items have
	chunkCodes          // of a codes-only collection
	chunkSkips          // rows that are no items, and why
	chunkRecords        // labels, fields and payload
	chunkVectors
	chunkParts
)

const (
	chunkMagic       = 0x46494d43 // "CMIF"
	chunkHeaderBytes = 4 + 4 + 4*8 + chunkParts*8

	stagedChunkBytes = 4 << 20 // from which on one is written
	stagedChunkItems = 1 << 14 // at most
)

// reset makes the chunk an empty one, after so many rows and items.
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

// full reports whether it is time to write it, where that is so from so many bytes on.
func (c *chunk) full(bytes int) bool { return c.items == stagedChunkItems || c.size() >= bytes }

// addLabel adds the name of a label.
func (c *chunk) addLabel(name string) {
	c.parts[chunkLabels] = appendString(c.parts[chunkLabels], name)
}

// addSkip adds a row that is no item.
func (c *chunk) addSkip(why string) {
	at := uint64(c.items) + uint64(c.skips)
	c.parts[chunkSkips] = appendString(binary.AppendUvarint(c.parts[chunkSkips], at), why)
	c.skips++
}

// add adds an item of a collection with codes of so many bits, 0 where it learns them,
// whose labels have these numbers, ascending.
func (c *chunk) add(it *record.Item, bits int, labels []uint32) error {
	if c.plain && !it.IsPlain() { // the items before it have empty ones
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
			vectors = appendSized(vectors, func(b []byte) []byte { return record.AppendVector(b, x) })
		}
		c.parts[chunkVectors] = vectors
		var err error
		c.parts[chunkRecords] = appendSized(c.parts[chunkRecords], func(b []byte) []byte {
			if len(it.Labels)+len(it.Fields)+len(it.Payload) == 0 {
				return b
			}
			rec := codec.ItemRecord{Labels: labels, Fields: it.Fields, Payload: it.Payload}
			b, err = rec.Append(b)
			return b
		})
		if err != nil {
			return err
		}
	}
	c.parts[chunkKeys] = keys
	c.items++
	c.bytes += uint64(it.Bytes())
	return nil
}

// appendString appends the length of s and s.
func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// appendSized appends what f appends, after its length in four bytes: it is not known before.
func appendSized(dst []byte, f func([]byte) []byte) []byte {
	at := len(dst)
	dst = f(append(dst, 0, 0, 0, 0))
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
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

// A chunkHeader is what the header of a chunk says.
type chunkHeader struct {
	rows, start, bytes uint64
	items, skips       uint32
	lens, sums         [chunkParts]uint32
}

func decodeChunkHeader(b []byte) (h chunkHeader, err error) {
	le := binary.LittleEndian
	if len(b) != chunkHeaderBytes || le.Uint32(b) != chunkMagic || le.Uint32(b[4:]) != crc32.Checksum(b[8:], castagnoli) {
		return h, fmt.Errorf("%w: header of a chunk", codec.ErrCorrupt)
	}
	h.rows, h.start, h.items, h.skips, h.bytes = le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint32(b[24:]), le.Uint32(b[28:]), le.Uint64(b[32:])
	for i := range h.lens {
		h.lens[i], h.sums[i] = le.Uint32(b[40+8*i:]), le.Uint32(b[44+8*i:])
	}
	if h.items > stagedChunkItems || h.start > h.rows || h.rows+uint64(h.items)+uint64(h.skips) >= 1<<62 {
		return h, fmt.Errorf("%w: header of a chunk of %d items", codec.ErrCorrupt, h.items)
	}
	return h, nil
}

// size returns how many bytes the parts take.
func (h *chunkHeader) size() (n int64) {
	for _, size := range h.lens {
		n += int64(size)
	}
	return n
}

// offset returns where a part begins, from the header on.
func (h *chunkHeader) offset(part int) int64 {
	n := int64(chunkHeaderBytes)
	for _, size := range h.lens[:part] {
		n += int64(size)
	}
	return n
}

// sound reports whether these are the bytes of a part.
func (h *chunkHeader) sound(part int, b []byte) error {
	if crc32.Checksum(b, castagnoli) != h.sums[part] {
		return fmt.Errorf("%w: part %d of a chunk has another sum", codec.ErrCorrupt, part)
	}
	return nil
}

// A chunkReader walks over a part of a chunk; the first failure sticks.
type chunkReader struct {
	b   []byte
	bad bool
}

func (r *chunkReader) uvarint(limit uint64) uint64 {
	x, n := binary.Uvarint(r.b)
	if n <= 0 || x > limit {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return x
}

func (r *chunkReader) take(n int) []byte {
	if n > len(r.b) {
		r.b, r.bad = nil, true
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *chunkReader) sized() []byte {
	n := r.take(4)
	if n == nil {
		return nil
	}
	return r.take(int(binary.LittleEndian.Uint32(n)))
}

// text reads a string of at most so many bytes of UTF-8.
func (r *chunkReader) text(most int) []byte {
	b := r.take(int(r.uvarint(uint64(most))))
	if !utf8.Valid(b) {
		r.b, r.bad = nil, true
		return nil
	}
	return b
}

// end checks that nothing is left.
func (r *chunkReader) end(what string) error {
	if r.bad || len(r.b) > 0 {
		return fmt.Errorf("%w: %s of a chunk", codec.ErrCorrupt, what)
	}
	return nil
}

// maxSkipBytes bounds what is kept of why a row was skipped.
const maxSkipBytes = 1 << 10

// eachLabel calls f with the names of labels that appear first in the chunk.
func (h *chunkHeader) eachLabel(part []byte, f func(name string)) error {
	r := chunkReader{b: part}
	for len(r.b) > 0 {
		name := r.text(record.MaxLabelBytes)
		if len(name) == 0 {
			r.bad = true
			break
		}
		f(string(name))
	}
	return r.end("labels")
}

// eachKey calls f with the keys of the items, and has with the modalities that they have,
// of so many.
func (h *chunkHeader) eachKey(part []byte, modalities int, f func(key []byte), has func(i, t int)) error {
	r := chunkReader{b: part}
	for i := 0; i < int(h.items) && !r.bad; i++ {
		key := r.text(record.MaxKeyBytes)
		next := uint64(0)
		for range r.uvarint(uint64(modalities)) {
			t := r.uvarint(uint64(max(modalities-1, 0)))
			if r.bad = r.bad || t < next || modalities == 0; r.bad {
				break
			}
			has(i, int(t))
			next = t + 1
		}
		if !r.bad {
			f(key)
		}
	}
	return r.end("keys")
}

// eachSkip calls f with the rows that are no items, counted from the first of the chunk.
func (h *chunkHeader) eachSkip(part []byte, f func(row uint64, why string)) error {
	r := chunkReader{b: part}
	next := uint64(0)
	for range h.skips {
		row := r.uvarint(uint64(h.items) + uint64(h.skips) - 1)
		why := r.text(maxSkipBytes)
		if r.bad = r.bad || row < next; r.bad {
			break
		}
		f(row, string(why))
		next = row + 1
	}
	return r.end("skipped rows")
}

// An itemBuffer is memory for the items of a block.
type itemBuffer struct {
	items    []record.Item
	pointers []*record.Item
	vectors  [][]model.Vector // by item and modality
	parts    [chunkParts][]byte
}

// prepare returns n empty items.
func (b *itemBuffer) prepare(n int) []*record.Item {
	if len(b.items) < n {
		b.items, b.pointers, b.vectors = make([]record.Item, n), make([]*record.Item, n), make([][]model.Vector, n)
		for i := range b.items {
			b.pointers[i] = &b.items[i]
		}
	}
	clear(b.items)
	return b.pointers[:n]
}

// decodeRecords reads the part of labels, fields and payloads. name returns the name of a
// label by its number.
func (h *chunkHeader) decodeRecords(part []byte, d *record.Descriptor, name func(id uint32) (string, bool), items []*record.Item) error {
	r := chunkReader{b: part}
	for _, it := range items {
		b := r.sized()
		if len(b) == 0 {
			continue
		}
		rec, err := codec.DecodeItemRecord(b)
		if err != nil {
			return err
		}
		for _, id := range rec.Labels {
			label, ok := name(id)
			if !ok {
				return fmt.Errorf("%w: label %d of a chunk", codec.ErrCorrupt, id)
			}
			it.Labels = append(it.Labels, label)
		}
		for _, f := range rec.Fields {
			if int(f.ID) >= len(d.Fields) {
				return fmt.Errorf("%w: field %d of a chunk", codec.ErrCorrupt, f.ID)
			}
			if _, err := d.Fields[f.ID].CheckValue(f.Value); err != nil {
				return fmt.Errorf("%w: field %d of a chunk: %w", codec.ErrCorrupt, f.ID, err)
			}
		}
		it.Fields, it.Payload = rec.Fields, rec.Payload
	}
	return r.end("records")
}

// decodeVectors reads the part of vectors, in the memory of buf.
func (h *chunkHeader) decodeVectors(part []byte, d *record.Descriptor, items []*record.Item, buf *itemBuffer) error {
	r := chunkReader{b: part}
	for i, it := range items {
		present := r.uvarint(uint64(len(d.Modalities)))
		if present == 0 {
			continue
		}
		if len(buf.vectors[i]) < 2*len(d.Modalities) { // half of it keeps memory of modalities that are absent
			buf.vectors[i] = make([]model.Vector, 2*len(d.Modalities))
		}
		it.Vectors = buf.vectors[i][:len(d.Modalities)]
		memory := buf.vectors[i][len(d.Modalities):]
		clear(it.Vectors)
		next := uint64(0)
		for range present {
			t := r.uvarint(uint64(len(d.Modalities) - 1))
			if r.bad = r.bad || t < next; r.bad {
				return r.end("vectors")
			}
			if err := d.Modalities[t].DecodeVector(&memory[t], r.sized()); err != nil {
				return err
			}
			it.Vectors[t] = memory[t]
			next = t + 1
		}
	}
	return r.end("vectors")
}
