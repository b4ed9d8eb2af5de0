package spool

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/model"
)

// Bytes from a file are not trusted: every length is compared with the bytes that are there, every
// number with its limit, and nothing is allocated by a length that has not been checked. FuzzChunk
// feeds any bytes.

// A chunkHeader is the header of a chunk. Its fields mean the same as those of chunk.
type chunkHeader struct {
	rows, start, bytes uint64
	items, skips       uint32
	lens               [chunkParts]uint32 // of the parts
	sums               [chunkParts]uint32 // CRC-32C of the parts
}

// decodeChunkHeader reads a header. The error wraps codec.ErrCorrupt.
func decodeChunkHeader(b []byte) (h chunkHeader, err error) {
	le := binary.LittleEndian
	if len(b) != chunkHeaderBytes || le.Uint32(b) != chunkMagic || le.Uint32(b[4:]) != crc32.Checksum(b[8:], castagnoli) {
		return h, fmt.Errorf("%w: header of a chunk", codec.ErrCorrupt)
	}
	h.rows, h.start, h.items, h.skips, h.bytes = le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint32(b[24:]), le.Uint32(b[28:]), le.Uint64(b[32:])
	for i := range h.lens {
		h.lens[i], h.sums[i] = le.Uint32(b[40+8*i:]), le.Uint32(b[44+8*i:])
	}
	if h.items > chunkItems || h.start > h.rows || h.rows+uint64(h.items)+uint64(h.skips) >= 1<<62 {
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

// plain reports whether the items have nothing but keys and codes.
func (h *chunkHeader) plain() bool { return h.lens[chunkRecords] == 0 && h.lens[chunkVectors] == 0 }

// offset returns where a part begins, counted from the header.
func (h *chunkHeader) offset(part int) int64 {
	n := int64(chunkHeaderBytes)
	for _, size := range h.lens[:part] {
		n += int64(size)
	}
	return n
}

// sound checks the sum of a part. The error wraps codec.ErrCorrupt.
func (h *chunkHeader) sound(part int, b []byte) error {
	if crc32.Checksum(b, castagnoli) != h.sums[part] {
		return fmt.Errorf("%w: part %d of a chunk has another sum", codec.ErrCorrupt, part)
	}
	return nil
}

// A chunkReader walks over a part of a chunk. After the first error it reads zeros.
type chunkReader struct {
	b   []byte // that is left
	bad bool   // there was an error
}

// uvarint reads a number, at most limit.
func (r *chunkReader) uvarint(limit uint64) uint64 {
	x, n := binary.Uvarint(r.b)
	if n <= 0 || x > limit {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return x
}

// take reads n bytes.
func (r *chunkReader) take(n int) []byte {
	if n > len(r.b) {
		r.b, r.bad = nil, true
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// sized reads bytes that follow their length.
func (r *chunkReader) sized() []byte {
	n := r.take(4)
	if n == nil {
		return nil
	}
	return r.take(int(binary.LittleEndian.Uint32(n)))
}

// text reads a string, at most so many bytes of UTF-8.
func (r *chunkReader) text(most int) []byte {
	b := r.take(int(r.uvarint(uint64(most))))
	if !utf8.Valid(b) {
		r.b, r.bad = nil, true
		return nil
	}
	return b
}

// end reports an error, or bytes that are left. It wraps codec.ErrCorrupt.
func (r *chunkReader) end(what string) error {
	if r.bad || len(r.b) > 0 {
		return fmt.Errorf("%w: %s of a chunk", codec.ErrCorrupt, what)
	}
	return nil
}

// maxSkipBytes bounds the reason for which a row is skipped.
const maxSkipBytes = 1 << 10

// eachLabel calls f with the names of labels in the part of labels.
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

// eachKey calls f with the keys in the part of keys, in order, and before each has with the
// modalities of the item, of so many. Items count from 0 in each chunk.
func (h *chunkHeader) eachKey(part []byte, modalities int, f func(key []byte), has func(i, t int)) error {
	r := chunkReader{b: part}
	for i := 0; i < int(h.items) && !r.bad; i++ {
		key := r.text(record.MaxKeyBytes)
		next := uint64(0)
		for range r.uvarint(uint64(modalities)) {
			t := r.uvarint(uint64(max(modalities-1, 0)))
			// Modalities ascend, so none is there twice.
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

// eachSkip calls f with the rows in the part of skips. Rows count from 0 in each chunk.
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

// An itemBuffer is memory for the items of one chunk after the other.
type itemBuffer struct {
	items    []record.Item
	pointers []*record.Item     // to items
	vectors  [][]model.Vector   // by item and modality, see decodeVectors
	parts    [chunkParts][]byte // read from the file
}

// prepare returns n empty items, in place of those before.
func (b *itemBuffer) prepare(n int) []*record.Item {
	if len(b.items) < n {
		b.items, b.pointers, b.vectors = make([]record.Item, n), make([]*record.Item, n), make([][]model.Vector, n)
		for i := range b.items {
			b.pointers[i] = &b.items[i]
		}
	}
	// Nothing of the chunk before may be left: absent parts are not written.
	clear(b.items)
	return b.pointers[:n]
}

// decodeRecords reads the part of records into items. name returns the name of a label by its
// number.
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
			// A right checksum does not say that the field exists.
			if int(f.ID) >= len(d.Fields) {
				return fmt.Errorf("%w: field %d of a chunk", codec.ErrCorrupt, f.ID)
			}
			field := d.Fields[f.ID]
			field.Indexed = false // it may have become so since; what then is too long is no damage, and the commit refuses it
			if _, err := field.CheckValue(f.Value); err != nil {
				return fmt.Errorf("%w: field %d of a chunk: %w", codec.ErrCorrupt, f.ID, err)
			}
		}
		it.Fields, it.Payload = rec.Fields, rec.Payload
	}
	return r.end("records")
}

// decodeVectors reads the part of vectors into items, in the memory of buf.
func (h *chunkHeader) decodeVectors(part []byte, d *record.Descriptor, items []*record.Item, buf *itemBuffer) error {
	r := chunkReader{b: part}
	for i, it := range items {
		present := r.uvarint(uint64(len(d.Modalities)))
		if present == 0 {
			continue
		}
		if len(buf.vectors[i]) < 2*len(d.Modalities) { // the first half is of the item, the second keeps the memory of absent vectors
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
