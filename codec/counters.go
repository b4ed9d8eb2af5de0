package codec

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Counters are the numbers of a collection: those that only grow, its size, and the
// state of its spaces. They are written in the same commit as the changes that they
// count.
//
//	uvarint  next row, next automatic key, items, next space, active space, the space
//	         that was active before it (0: none), number of spaces; each:
//	uvarint    id
//	byte       flags: 1 it is being built, 2 it becomes the active one when it is
//	uvarint    revision, rows below this have been coded (while it is being built),
//	           rows that have taught, next number of a retraction, revision of the
//	           statistics that are stored, next code number, codes that some item
//	           has, items that have a code
type Counters struct {
	NextRow, NextKey, Items, NextSpace uint64 // next row and automatic key to give out; items there are; next id of a space

	ActiveSpace, PreviousSpace uint64          // ids; 0: none
	Spaces                     []SpaceCounters // by ascending id
}

// SpaceCounters are the numbers of one space; see Counters for each of them.
type SpaceCounters struct {
	ID                 uint64
	Building, Activate bool // it is being built; it becomes active when that is done

	Revision       uint64 // of the projections
	Built          uint64 // rows below this have been coded, while it is being built
	Taught         uint64 // rows that have taught
	NextRetraction uint64 // number of the next retraction
	Checkpoint     uint64 // revision of the statistics that are stored
	CodeCounters
}

// CodeCounters are the numbers of the codes of a space.
type CodeCounters struct {
	NextCode, Codes, Coded uint64 // next code number; codes that some item has; items that have a code
}

const (
	flagBuilding = 1
	flagActivate = 2
)

// Append appends the encoded counters.
func (c Counters) Append(dst []byte) []byte {
	numbers := func(xs ...uint64) {
		for _, x := range xs {
			dst = binary.AppendUvarint(dst, x)
		}
	}
	numbers(c.NextRow, c.NextKey, c.Items, c.NextSpace, c.ActiveSpace, c.PreviousSpace, uint64(len(c.Spaces)))
	for _, s := range c.Spaces {
		numbers(s.ID)
		flags := byte(0)
		if s.Building {
			flags |= flagBuilding
		}
		if s.Activate {
			flags |= flagActivate
		}
		dst = append(dst, flags)
		numbers(s.Revision, s.Built, s.Taught, s.NextRetraction, s.Checkpoint, s.NextCode, s.Codes, s.Coded)
	}
	return dst
}

// DecodeCounters reads counters. The error wraps ErrCorrupt.
func DecodeCounters(b []byte) (Counters, error) {
	var c Counters
	r := reader{b: b}
	c.NextRow = r.uvarint(math.MaxUint32)
	c.NextKey = r.uvarint(math.MaxUint64)
	c.Items = r.uvarint(c.NextRow)
	c.NextSpace = r.uvarint(math.MaxUint32)
	c.ActiveSpace = r.uvarint(math.MaxUint32)
	c.PreviousSpace = r.uvarint(math.MaxUint32)
	last := uint64(0)
	for range r.uvarint(uint64(len(r.b))) {
		s := r.spaceCounters(c)
		if r.bad = r.bad || s.ID <= last || s.ID >= c.NextSpace; r.bad {
			break
		}
		last = s.ID
		c.Spaces = append(c.Spaces, s)
	}
	if r.bad || len(r.b) > 0 {
		return Counters{}, fmt.Errorf("%w: counters: %d bytes", ErrCorrupt, len(b))
	}
	return c, nil
}

func (r *reader) spaceCounters(c Counters) (s SpaceCounters) {
	s.ID = r.uvarint(math.MaxUint32)
	flags := r.take(1)[0]
	r.bad = r.bad || flags > flagBuilding|flagActivate
	s.Building, s.Activate = flags&flagBuilding != 0, flags&flagActivate != 0
	s.Revision = r.uvarint(math.MaxUint32)
	s.Built = r.uvarint(c.NextRow)
	s.Taught = r.uvarint(c.NextRow)
	s.NextRetraction = r.uvarint(math.MaxUint64)
	s.Checkpoint = r.uvarint(s.Revision)
	s.NextCode = r.uvarint(math.MaxUint32)
	s.Codes = r.uvarint(s.NextCode)
	s.Coded = r.uvarint(c.NextRow)
	return s
}
