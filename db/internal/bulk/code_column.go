package bulk

import (
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
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
