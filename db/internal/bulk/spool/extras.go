package spool

import (
	"errors"
	"fmt"
	"sort"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/bulk"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// extras are the bulk.Extras of a settled Spool: labels, fields, payloads and vectors of its
// items. A chunk is a block.
type extras struct {
	spool      *Spool
	descriptor *record.Descriptor // of the collection, for decoding
}

func (x *extras) Blocks() int { return len(x.spool.chunks) }

func (x *extras) BlockOf(i int) int {
	chunks := x.spool.chunks
	return sort.Search(len(chunks), func(j int) bool { return chunks[j].start > uint64(i) }) - 1
}

func (x *extras) NewReader() bulk.Reader { return &reader{of: x} }

// A reader is a bulk.Reader of extras. It belongs to one goroutine.
type reader struct {
	of  *extras
	buf itemBuffer // the memory of the items that Read has returned
}

func (r *reader) Read(block int, parts bulk.Parts) (from int, items []*record.Item, err error) {
	x, buf := r.of, &r.buf
	ref := &x.spool.chunks[block]
	items = buf.prepare(int(ref.items))
	part := func(p int) ([]byte, error) {
		err := ref.readPart(p, &buf.parts[p])
		return buf.parts[p], err
	}
	var b []byte
	// Read only what was asked for: vectors are most of a chunk.
	if parts&bulk.RecordPart != 0 && ref.lens[chunkRecords] > 0 {
		if b, err = part(chunkRecords); err == nil {
			err = ref.decodeRecords(b, x.descriptor, x.spool.items.Labels.Name, items)
		}
	}
	if err == nil && parts&bulk.VectorPart != 0 && ref.lens[chunkVectors] > 0 {
		if b, err = part(chunkVectors); err == nil {
			err = ref.decodeVectors(b, x.descriptor, items, buf)
		}
	}
	if err != nil {
		return 0, nil, x.unreadable(err)
	}
	return int(ref.start), items, nil
}

// unreadable words the error of reading a chunk.
func (x *extras) unreadable(err error) error {
	if errors.Is(err, codec.ErrCorrupt) {
		return &damage{fault.CorruptionError{What: x.spool.Dir() + ": nothing of it is stored: begin the import again, which stages the damaged ones anew", Err: err}}
	}
	return fmt.Errorf("fddhdb: read staged items: %w", err)
}

// A damage is an error that is both fault.ErrStaged and fault.ErrCorrupt.
type damage struct{ fault.CorruptionError }

func (e *damage) Error() string {
	return fmt.Sprintf("%v: %s: %v", fault.ErrStaged, e.What, e.Err)
}

func (e *damage) Is(target error) bool {
	return target == fault.ErrStaged || target == fault.ErrCorrupt
}
