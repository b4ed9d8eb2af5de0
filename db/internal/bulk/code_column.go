package bulk

import (
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
)

// A codeColumn is the itemCodes that Commit makes for one space: the codes of all items,
// packed, and their projections, in memory or in a file. Goroutines that encode different
// blocks set it at the same time, without a lock: each writes the elements of its own
// block. When all are done it is only read.
type codeColumn struct {
	space   *spaces.Space  // a revision of a space; another revision needs another column
	targets []targetColumn // by position of the target in the space

	projected []bool // by item: it has a projection
	starts    []int  // by block of the extras: its first item

	// The projections of a block stand one behind the other, without those of items that
	// have none: in projections, by block, or in file, from at[block] on.
	projections [][]byte
	file        *tempFile // nil: projections has them; belongs to the column
	at          []int64   // bytes
}

// A targetColumn holds the codes of one target, by item. The code of an item without one is
// zero and not to be read.
type targetColumn struct {
	codes codec.Codes
	from  []codec.Provenance // noProvenance if the item has no code
}

// noProvenance marks an item without a code. It is the provenance of no code.
const noProvenance codec.Provenance = 0

// newCodeColumn returns a column for n items in so many blocks. The caller sets either
// projections, or file and at.
func newCodeColumn(s *spaces.Space, n, blocks int) *codeColumn {
	c := &codeColumn{space: s, projected: make([]bool, n), starts: make([]int, blocks)}
	for range s.Targets {
		v := targetColumn{codec.NewCodes(s.Bits, n), make([]codec.Provenance, n)}
		// Room for all codes at once: goroutines write into it by item, and nothing grows.
		v.codes.Append(make(codec.Code, n*codec.Words(s.Bits)))
		c.targets = append(c.targets, v)
	}
	return c
}

// set copies the encodings of the items of a block, the first of which is item from. Each
// block is set once.
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

// len implements itemCodes.
func (c *codeColumn) len() int { return len(c.projected) }

// in implements itemCodes. The code aliases the column.
func (c *codeColumn) in(target, i int) spaces.TargetCode {
	v := &c.targets[target]
	if v.from[i] == noProvenance {
		return spaces.TargetCode{}
	}
	return spaces.TargetCode{Code: v.codes.At(i), From: v.from[i]}
}

// eachProjection implements itemCodes. It holds the projections of one block at a time if
// they are in a file.
func (c *codeColumn) eachProjection(f func(i int, projection []byte) error) error {
	width := c.space.ProjectionBytes()
	var buf []byte
	for block, from := range c.starts {
		to := len(c.projected)
		if block+1 < len(c.starts) {
			to = c.starts[block+1]
		}
		// The file has no lengths: those of a block follow from the items that have a projection.
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
