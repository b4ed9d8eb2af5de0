package parquet

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/format"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// stream reads the rows of one leaf, from the first row group to the last. It belongs to one reader.
type stream struct {
	f    *file
	leaf *leaf

	// State of the row group.
	group    int   // index of the next one
	rows     int64 // rows that are left
	codec    format.CompressionCodec
	at, end  int64 // start of the next page, and end of the last one
	values   int64 // values that its pages still have to bring, nulls included
	dictData []byte

	// State of the page.
	n, pos     int    // levels, and those that have been read
	reps, defs []byte // levels; nil if all of them must be the same
	present    bool   // no value is missing
	vals       values
	vpos       int // values that have been read

	// Memory of the header, and of the compressed and the decompressed page.
	head, packed, plain []byte
	decoder             decoder
	entries             decoder // decodes the dictionary

	cell  cell
	raw   []byte   // memory of a row in several pages
	parts [][]byte // memory of values of any length
}

// cell is a row of a leaf. It is valid until the next row is read.
type cell struct {
	null bool // there is no value and no list
	hole int  // index of the first value of the list that is null, or -1
	values
}

func (f *file) stream(l *leaf) *stream {
	s := &stream{f: f, leaf: l}
	s.decoder = decoder{leaf: l, memory: &f.memory}
	s.entries = s.decoder
	return s
}

// wrap adds the name of the column to an error.
func (s *stream) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("column %s, row group %d: %w", matrix.Quote(s.leaf.path[0]), s.group-1, err)
}

// next returns the next row. There must be one.
func (s *stream) next() (*cell, error) {
	for s.rows == 0 {
		if s.group > 0 && (s.values > 0 || s.pos < s.n) {
			return nil, s.wrap(errRows)
		}
		if err := s.open(); err != nil {
			return nil, s.wrap(err)
		}
	}
	s.rows--
	if err := s.row(); err != nil {
		return nil, s.wrap(err)
	}
	return &s.cell, nil
}

var errRows = errors.New("it has another number of rows than the row group: it is damaged")

// open begins the next row group.
func (s *stream) open() error {
	if s.group == len(s.f.groups) {
		return errRows
	}
	g := &s.f.groups[s.group]
	s.group++
	m := &g.Columns[s.leaf.ordinal].MetaData
	s.rows, s.codec, s.values = g.NumRows, m.Codec, m.NumValues
	s.n, s.pos = 0, 0
	s.decoder.dict = nil
	if m.Type != s.leaf.physical {
		return fmt.Errorf("it is of type %v, the schema says %v: it is damaged", m.Type, s.leaf.physical)
	}
	if s.rows == 0 {
		return nil
	}
	var err error
	s.at, s.end, err = s.f.extent(m)
	return err
}

// row reads the next row into the cell.
func (s *stream) row() error {
	c := &s.cell
	*c = cell{hole: -1, values: values{width: s.leaf.width}}
	if err := s.fill(); err != nil {
		return err
	}
	if s.leaf.maxRep == 0 {
		if !s.present && int(s.defs[s.pos]) < s.leaf.maxDef {
			c.null = true
			s.pos++
			return nil
		}
		s.take(1)
		s.pos++
		return nil
	}
	if s.reps[s.pos] != 0 {
		return fmt.Errorf("%w: a row starts inside a list", errPage)
	}
	s.raw, s.parts = s.raw[:0], s.parts[:0]
	for first := true; ; first = false {
		// The part of the row in this page.
		n := s.n - s.pos
		start := 1
		if !first {
			start = 0
		}
		if i := bytes.IndexByte(s.reps[s.pos+start:s.n], 0); i >= 0 {
			n = i + start
		}
		if err := s.part(n, first); err != nil {
			return err
		}
		if s.pos < s.n || s.values == 0 {
			if len(s.raw) > 0 {
				s.raw = append(s.raw, c.raw...)
				c.raw = s.raw
			} else if len(s.parts) > 0 {
				s.parts = append(s.parts, c.any...)
				c.any = s.parts
			}
			return nil
		}
		// The row may go on in the next page, which replaces this one.
		if err := s.keep(); err != nil {
			return err
		}
		if err := s.fill(); err != nil {
			return err
		}
		if s.reps[s.pos] == 0 {
			c.raw, c.any = s.raw, s.parts
			return nil
		}
	}
}

// keep copies the part of the row in this page.
func (s *stream) keep() error {
	c := &s.cell
	if len(s.raw)+len(c.raw) > maxPage || len(s.parts)+len(c.any) > maxValues {
		return errors.New("has a row that is too long")
	}
	s.raw = append(s.raw, c.raw...)
	for _, v := range c.any {
		s.parts = append(s.parts, bytes.Clone(v))
	}
	c.raw, c.any = nil, nil
	return nil
}

// part reads n levels of a list into the cell. first says that they are the first ones of the row.
func (s *stream) part(n int, first bool) error {
	c := &s.cell
	if s.present {
		s.take(n)
		s.pos += n
		return nil
	}
	defs := s.defs[s.pos : s.pos+n]
	if d := int(defs[0]); d < s.leaf.repDef {
		if n > 1 || !first {
			return fmt.Errorf("%w: a list is empty and has values", errPage)
		}
		c.null = d < s.leaf.repDef-1
		s.pos++
		return nil
	}
	there := 0
	for i, d := range defs {
		switch {
		case int(d) == s.leaf.maxDef:
			there++
		case int(d) < s.leaf.repDef:
			return fmt.Errorf("%w: a list is empty and has values", errPage)
		case c.hole < 0:
			c.hole = i
		}
	}
	s.take(there)
	s.pos += n
	return nil
}

// take takes the next n values of the page. There are enough, by the levels.
func (s *stream) take(n int) {
	if w := s.leaf.width; w > 0 {
		s.cell.raw = s.vals.raw[s.vpos*w : (s.vpos+n)*w]
	} else {
		s.cell.any = s.vals.any[s.vpos : s.vpos+n]
	}
	s.vpos += n
}

// fill reads the next page once all levels of this one have been read.
func (s *stream) fill() error {
	for s.pos == s.n {
		if s.values == 0 {
			return errRows
		}
		if err := s.page(); err != nil {
			return err
		}
	}
	return nil
}
