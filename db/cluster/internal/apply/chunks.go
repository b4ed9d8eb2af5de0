package apply

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// chunks are the chunks of operations that are not complete yet. Their bytes are in the database, as marks.
// So an operation follows from the log alone, and a backup has what is needed to complete it.
type chunks struct {
	of     map[wire.ID]*incomplete
	unused []string // marks that no operation needs any more
}

// An incomplete is an operation that lacks some of its chunks.
type incomplete struct {
	base    uint64 // Op.Base
	chunks  int    // that it takes
	control bool   // Message.Control
	marks   map[int][]string
}

// add adds a mark of a chunk.
func (c *chunks) add(p *pending, mark string) {
	o := p.op
	of := c.of[o.ID]
	if of == nil {
		if c.of == nil {
			c.of = map[wire.ID]*incomplete{}
		}
		of = &incomplete{base: o.Base, chunks: o.Chunks, control: p.control, marks: map[int][]string{}}
		c.of[o.ID] = of
	}
	of.marks[o.Chunk] = append(of.marks[o.Chunk], mark)
}

// has reports whether the database has a chunk.
func (c *chunks) has(o *wire.Op) bool { return c.of[o.ID] != nil && c.of[o.ID].marks[o.Chunk] != nil }

// drop gives up the chunks of an operation.
func (c *chunks) drop(id wire.ID) {
	if of := c.of[id]; of != nil {
		for _, marks := range of.marks {
			c.unused = append(c.unused, marks...)
		}
		delete(c.of, id)
	}
}

// expire gives up operations that can no longer be applied after the message with that sequence.
func (c *chunks) expire(seq uint64) {
	for id, of := range c.of {
		if of.base+wire.Memory <= seq {
			c.drop(id)
		}
	}
}

// removed forgets the marks that a commit has removed, see next.
func (c *chunks) removed() { c.unused = c.unused[len(c.next()):] }

// next returns the marks that the next commit removes. They all fit db.MaxMarksBytes.
func (c *chunks) next() []string { return c.unused[:min(len(c.unused), 1000)] }

// chunkMarks yields the bytes of a chunk in stretches that fit a mark, with the names of these marks. A name
// has all that an incomplete has.
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
func (c *chunks) read(mark string) error {
	p, id, n := &pending{op: &wire.Op{}}, []byte(nil), 0
	_, err := fmt.Sscanf(strings.TrimPrefix(mark, chunkPrefix), "%32x/%x/%t/%06d/%06d/%02d", &id, &p.op.Base,
		&p.control, &p.op.Chunks, &p.op.Chunk, &n)
	if copy(p.op.ID[:], id); err != nil || chunkMark(p, n) != mark {
		return fmt.Errorf("mark %q is of no chunk", mark)
	}
	c.add(p, mark)
	return nil
}

// complete returns the operation that a chunk completes. If others are missing, it adds the chunk to the
// batch and returns nil. Whatever is wrong with the chunks is db.ErrInvalid: every replica refuses it.
func (s *State) complete(b *db.Batch, p *pending) (*wire.Op, error) {
	o := p.op
	of := s.chunks.of[o.ID]
	if of == nil {
		of = &incomplete{base: o.Base, chunks: o.Chunks, control: p.control}
	}
	if of.chunks != o.Chunks || of.base != o.Base || of.control != p.control {
		return nil, fmt.Errorf("%w: chunks of different operations with one ID", db.ErrInvalid)
	}
	if s.chunks.has(o) {
		return nil, nil
	}
	if len(of.marks)+1 < o.Chunks {
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
	case whole.ID != o.ID || whole.Kind == wire.Chunk:
		return nil, fmt.Errorf("%w: chunks of another operation", db.ErrInvalid)
	}
	return whole, nil
}
