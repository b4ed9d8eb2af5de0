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
	space *spaces.Space      // a revision of a space; another revision needs another column
	codes codec.Codes        // by item; zero and not to be read of one without a code
	froms []codec.Provenance // by item; noProvenance of one without a code

	projected []bool // by item: it has a projection
	starts    []int  // by block of the extras: its first item

	// The projections of a block stand one behind the other, without those of items that
	// have none: in projections, by block, or in file, from at[block] on.
	projections [][]byte
	file        *tempFile // nil: projections has them; belongs to the column
	at          []int64   // bytes
}

// noProvenance marks an item without a code. It is the provenance of no code.
const noProvenance codec.Provenance = 0

// newCodeColumn returns a column for n items in so many blocks. The caller sets either
// projections, or file and at.
func newCodeColumn(s *spaces.Space, n, blocks int) *codeColumn {
	c := &codeColumn{
		space: s, codes: codec.NewCodes(s.Bits, n), froms: make([]codec.Provenance, n),
		projected: make([]bool, n), starts: make([]int, blocks),
	}
	// Room for all codes at once: goroutines write into it by item, and nothing grows.
	c.codes.Append(make(codec.Code, n*codec.Words(s.Bits)))
	return c
}

// set copies the encodings of the items of a block, the first of which is item from. Each
// block is set once.
func (c *codeColumn) set(block, from int, encs []spaces.Encoding) error {
	c.starts[block] = from
	var all []byte
	for j := range encs {
		if encs[j].Code != nil {
			copy(c.codes.At(from+j), encs[j].Code)
			c.froms[from+j] = encs[j].From
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

// code implements itemCodes. The code aliases the column.
func (c *codeColumn) code(i int) codec.Code {
	if c.froms[i] == noProvenance {
		return nil
	}
	return c.codes.At(i)
}

// from implements itemCodes.
func (c *codeColumn) from(i int) codec.Provenance { return c.froms[i] }

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
