package db

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/model"
)

// A codeColumn holds the codes of the items of a bulk in one space, packed, and their
// projections, in memory or in a file.
type codeColumn struct {
	space   *spaces.Space
	targets []targetColumn

	projected   []bool // the items that have a projection
	starts      []int  // first item of each block
	projections [][]byte
	file        *tempFile // in place of projections
	at          []int64   // where those of a block are in the file
}

// A targetColumn holds the codes of one target.
type targetColumn struct {
	codes codec.Codes
	from  []codec.Provenance // noProvenance where there is no code
}

// noProvenance is that of an item without a code.
const noProvenance codec.Provenance = 0

func newCodeColumn(s *spaces.Space, n, blocks int) *codeColumn {
	c := &codeColumn{space: s, projected: make([]bool, n), starts: make([]int, blocks)}
	for range s.Targets {
		v := targetColumn{codec.NewCodes(s.Bits, n), make([]codec.Provenance, n)}
		v.codes.Append(make(codec.Code, n*codec.Words(s.Bits)))
		c.targets = append(c.targets, v)
	}
	return c
}

// set sets the codes of the items of a block.
func (c *codeColumn) set(block, from int, encs []spaces.Encoding) error {
	c.starts[block] = from
	var all []byte
	for j := range encs {
		for v := range c.targets {
			if code := encs[j].In(v); code.Code != nil {
				copy(c.targets[v].codes.At(from+j), code.Code)
				c.targets[v].from[from+j] = code.From
			}
		}
		if p := encs[j].Projection; p != nil {
			c.projected[from+j] = true
			all = append(all, p...)
		}
	}
	if c.file == nil {
		c.projections[block] = all
		return nil
	}
	var err error
	c.at[block], err = c.file.append(all)
	return err
}

func (c *codeColumn) len() int { return len(c.projected) }

func (c *codeColumn) in(target, i int) spaces.TargetCode {
	v := &c.targets[target]
	if v.from[i] == noProvenance {
		return spaces.TargetCode{}
	}
	return spaces.TargetCode{Code: v.codes.At(i), From: v.from[i]}
}

func (c *codeColumn) eachProjection(f func(i int, projection []byte) error) error {
	width := c.space.ProjectionBytes()
	var buf []byte
	for block, from := range c.starts {
		to := len(c.projected)
		if block+1 < len(c.starts) {
			to = c.starts[block+1]
		}
		have := 0
		for _, is := range c.projected[from:to] {
			if is {
				have += width
			}
		}
		if c.file == nil {
			buf = c.projections[block]
		} else {
			if cap(buf) < have {
				buf = make([]byte, have)
			}
			if buf = buf[:have]; have > 0 {
				if err := c.file.read(buf, c.at[block]); err != nil {
					return err
				}
			}
		}
		rest := buf
		for i := from; i < to; i++ {
			if !c.projected[i] {
				continue
			}
			if err := f(i, rest[:width]); err != nil {
				return err
			}
			rest = rest[width:]
		}
	}
	return nil
}

// encode makes the codes of the items, under the models that are current now. The
// committer makes them again where that has changed by then. A codes-only collection has
// nothing to encode. progress may be nil, see ImportOptions.
func (k *bulk) encode(ctx context.Context, progress event.Progress) error {
	return k.collection.Read(func(_ *state.View, cv *state.CollectionView) error {
		if cv.CodesOnly() {
			return nil
		}
		for _, sp := range cv.Spaces {
			if err := k.encodeFor(ctx, sp.Space, cv.Labels.Lookup, progress); err != nil {
				return err
			}
		}
		return nil
	})
}

// in returns the codes of the items in a space, nil where there are none yet.
func (k *bulk) in(s *spaces.Space) *codeColumn {
	for _, column := range k.columns {
		if column.space == s {
			return column
		}
	}
	return nil
}

// dropColumns forgets the codes that have been made.
func (k *bulk) dropColumns() {
	for _, column := range k.columns {
		if column.file != nil {
			column.file.remove()
		}
	}
	k.columns = nil
}

// encodeFor makes the codes of the items in a space, block by block on all cores.
func (k *bulk) encodeFor(ctx context.Context, s *spaces.Space, labelIDs func(names []string) []uint32, progress event.Progress) error {
	x := k.extras()
	blocks := 0
	if x != nil {
		blocks = x.blocks()
	}
	c := newCodeColumn(s, k.n, blocks)
	if k.fs == nil {
		c.projections = make([][]byte, blocks)
	} else {
		var err error
		if c.file, err = newTempFile(k.fs, k.fs.PathJoin(k.dir, fmt.Sprintf("%d.projections", len(k.columns)+1))); err != nil {
			return err
		}
		c.at = make([]int64, blocks)
	}
	k.columns = append(k.columns, c)
	var done atomic.Int64
	var reporting sync.Mutex
	bufs := sync.Pool{New: func() any { return &encodeBuffer{reader: x.newReader()} }}
	return work.ParallelBy(ctx, work.All(), 1, blocks, func(block int) error {
		b := bufs.Get().(*encodeBuffer)
		defer bufs.Put(b)
		from, items, err := b.reader.read(block, recordPart|vectorPart)
		if err != nil {
			return err
		}
		if cap(b.encs) < len(items) {
			b.encs = make([]spaces.Encoding, len(items))
		}
		b.encs = b.encs[:len(items)]
		err = s.EncodeAll(ctx, 1, b.encs,
			func(j int) ([]model.Vector, []uint32) {
				if items[j] == nil {
					return nil, nil
				}
				return items[j].Vectors, labelIDs(items[j].Labels)
			},
			func(j int, err error) error {
				return fault.OfItem(k.key(from+j), fmt.Errorf("fddhdb: encode: %w", err))
			})
		if err != nil {
			return err
		}
		if err := c.set(block, from, b.encs); err != nil {
			return err
		}
		if n := done.Add(int64(len(items))); progress != nil && reporting.TryLock() {
			progress("encoding", n, int64(k.n))
			reporting.Unlock()
		}
		return nil
	})
}

// An encodeBuffer is scratch memory for the items of a block and their codes.
type encodeBuffer struct {
	reader extrasReader
	encs   []spaces.Encoding
}
