package apply

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// chunks are the chunks of operations that are not complete yet. Their bytes are in the database, as marks.
// So an operation follows from the log alone, and a backup has what is needed to complete it.
type chunks struct {
	of     map[chunked]*incomplete
	bytes  int      // of all of them
	oldest uint64   // least base; no operation expires before it does
	unused []string // marks that no operation needs any more
}

// A chunked is what all chunks of an operation have in common. Chunks that differ in any of it are of
// different operations, whoever has written them.
type chunked struct {
	id      wire.ID
	base    uint64 // Op.Base
	chunks  int    // that it takes
	control bool   // Message.Control
}

func chunkedOf(p *pending) chunked { return chunked{p.op.ID, p.op.Base, p.op.Chunks, p.control} }

// An incomplete is an operation that lacks some of its chunks.
type incomplete struct {
	marks map[int][]string // by chunk
	bytes int
}

// maxIncomplete bounds the bytes of all incomplete operations. A chunk beyond is refused.
const maxIncomplete = 4 * wire.MaxOp

// add adds a mark of a chunk, with its bytes.
func (c *chunks) add(p *pending, mark string, bytes int) {
	if c.of == nil {
		c.of = map[chunked]*incomplete{}
	}
	key := chunkedOf(p)
	of := c.of[key]
	if of == nil {
		of = &incomplete{marks: map[int][]string{}}
		if len(c.of) == 0 || key.base < c.oldest {
			c.oldest = key.base
		}
		c.of[key] = of
	}
	of.marks[p.op.Chunk] = append(of.marks[p.op.Chunk], mark)
	of.bytes += bytes
	c.bytes += bytes
}

// has reports whether the database has a chunk.
func (c *chunks) has(p *pending) bool {
	of := c.of[chunkedOf(p)]
	return of != nil && of.marks[p.op.Chunk] != nil
}

// drop gives up the chunks of an operation. None of them comes again: the operation is remembered, or
// expired.
func (c *chunks) drop(key chunked) {
	if of := c.of[key]; of != nil {
		for _, marks := range of.marks {
			c.unused = append(c.unused, marks...)
		}
		c.bytes -= of.bytes
		delete(c.of, key)
	}
}

// expire gives up operations that can no longer be applied after the message with that sequence.
func (c *chunks) expire(seq uint64) {
	if len(c.of) == 0 || c.oldest+wire.Memory > seq {
		return
	}
	c.oldest = math.MaxUint64
	for key := range c.of {
		if key.base+wire.Memory <= seq {
			c.drop(key)
		} else {
			c.oldest = min(c.oldest, key.base)
		}
	}
}

// removed forgets the marks that a commit has removed, see next.
func (c *chunks) removed() { c.unused = c.unused[len(c.next()):] }

// next returns the marks that the next commit removes. They all fit db.MaxMarksBytes.
func (c *chunks) next() []string { return c.unused[:min(len(c.unused), 1000)] }

// chunkMarks yields the bytes of a chunk in stretches that fit a mark, with the names of these marks. A name
// has all that a chunked has.
func chunkMarks(p *pending) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		n := 0
		for some := range slices.Chunk(p.op.Data, db.MaxMarkBytes) {
			if !yield(chunkMark(p, n), some) {
				return
			}
			n++
		}
	}
}

func chunkMark(p *pending, n int) string {
	o := p.op
	return fmt.Sprintf("%s%s/%x/%t/%06d/%06d/%02d", chunkPrefix, o.ID, o.Base, p.control, o.Chunks, o.Chunk, n)
}

// read adds a mark that the database has.
func (c *chunks) read(m db.Mark) error {
	p, id, n := &pending{op: &wire.Op{}}, []byte(nil), 0
	_, err := fmt.Sscanf(strings.TrimPrefix(m.Name, chunkPrefix), "%32x/%x/%t/%06d/%06d/%02d", &id, &p.op.Base,
		&p.control, &p.op.Chunks, &p.op.Chunk, &n)
	if copy(p.op.ID[:], id); err != nil || chunkMark(p, n) != m.Name {
		return fmt.Errorf("mark %q is of no chunk", m.Name)
	}
	c.add(p, m.Name, len(m.Value))
	return nil
}

// complete returns the operation that a chunk completes. If others are missing, it adds the chunk to the
// batch and returns nil. Whatever is wrong with the chunks is db.ErrInvalid or db.ErrFull: every replica
// refuses it.
func (s *State) complete(b *db.Batch, p *pending) (*wire.Op, error) {
	o, of := p.op, s.chunks.of[chunkedOf(p)]
	if of == nil {
		of = &incomplete{}
	}
	if s.chunks.has(p) {
		return nil, nil
	}
	if len(of.marks)+1 < o.Chunks {
		if s.chunks.bytes+len(o.Data) > maxIncomplete {
			return nil, fmt.Errorf("%w: %d bytes of operations that are not complete", db.ErrFull, s.chunks.bytes)
		}
		for mark, some := range chunkMarks(p) {
			b.Mark(mark, some)
		}
		return nil, nil
	}
	var all []byte
	for n := range o.Chunks {
		if n == o.Chunk {
			all = append(all, o.Data...)
			continue
		}
		for _, mark := range of.marks[n] {
			some, err := s.DB.Mark(mark)
			if err != nil { // %v: no operation is decided by this
				return nil, fmt.Errorf("chunk %d of operation %s: %v", n, o.ID, err)
			}
			all = append(all, some...)
		}
	}
	whole, err := wire.DecodeOp(all)
	switch {
	case errors.Is(err, wire.ErrVersion):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", db.ErrInvalid, err)
	case whole.ID != o.ID || whole.Base != o.Base || whole.Kind == wire.Chunk:
		return nil, fmt.Errorf("%w: chunks of another operation", db.ErrInvalid)
	}
	return whole, nil
}
