package search

import (
	"context"
	"fmt"
	"math"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/where"
)

// whereRows is one container of a collection after another, as where.Rows: the
// numbers in its bitmaps are the low 16 bits of rows.
type whereRows struct {
	ctx       context.Context
	r         pebble.Reader
	cv        *state.CollectionView
	container uint16
	live      *roaring.Bitmap
	slices    map[int]*sliceReader // by field
}

// eval evaluates the filter container by container, until f returns false.
func (w *whereRows) eval(filter *where.Filter, f func(container uint16, found *roaring.Bitmap) bool) error {
	for it := w.cv.Live.Iterator(); it.HasNext(); {
		w.container = uint16(it.PeekNext() >> 16)
		w.live = w.part(w.cv.Live)
		found, err := filter.Eval(w)
		if err != nil || !f(w.container, found) || w.container == math.MaxUint16 {
			return err
		}
		it.AdvanceIfNeeded((uint32(w.container) + 1) << 16)
	}
	return nil
}

// part returns the container of a set of rows.
func (w *whereRows) part(rows *roaring.Bitmap) *roaring.Bitmap {
	from := uint64(w.container) << 16
	all := roaring.New()
	all.AddRange(from, from+1<<16)
	all.And(rows)
	return roaring.AddOffset64(all, -int64(from))
}

func (w *whereRows) Live() *roaring.Bitmap { return w.live }

func (w *whereRows) Modality(id int) (*roaring.Bitmap, error) {
	return w.part(w.cv.Presence[id]), w.ctx.Err()
}

func (w *whereRows) Label(name string) (*roaring.Bitmap, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	ids := w.cv.Labels.Lookup([]string{name})
	if len(ids) == 0 {
		return roaring.New(), nil
	}
	return record.ReadRows(w.r, codec.RowsKey(w.cv.ID, codec.SetLabel, ids[0], w.container))
}

func (w *whereRows) Strings(field int, r where.Range) (*roaring.Bitmap, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	lo := codec.FieldRowsKey(w.cv.ID, uint16(field), w.container, r.Lo)
	if r.Single() {
		return record.ReadRows(w.r, lo)
	}
	hi := codec.FieldRowsKey(w.cv.ID, uint16(field), w.container, r.Hi)
	if r.Open {
		hi = codec.PrefixEnd(codec.FieldRowsKey(w.cv.ID, uint16(field), w.container, ""))
	}
	out := roaring.New()
	n := 0
	err := record.ForEachIn(w.r, lo, hi, func(key, value []byte) error {
		if n++; n%1024 == 0 {
			if err := w.ctx.Err(); err != nil {
				return err
			}
		}
		l, err := codec.DecodeLayer(value)
		if err != nil {
			return fault.Corrupt(err, "rows %x", key)
		}
		out.Or(l.Added)
		return nil
	})
	return out, err
}

func (w *whereRows) Ints(field int, lo, hi int64) (*roaring.Bitmap, error) {
	return w.between(field, codec.IntImage(lo), codec.IntImage(hi))
}

func (w *whereRows) Floats(field int, lo, hi float64) (*roaring.Bitmap, error) {
	return w.between(field, codec.FloatImage(lo), codec.FloatImage(hi))
}

func (w *whereRows) Bools(field int, value bool) (*roaring.Bitmap, error) {
	x := codec.BoolImage(value)
	return w.between(field, x, x)
}

func (w *whereRows) between(field int, lo, hi uint64) (*roaring.Bitmap, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	s := w.slices[field]
	if s == nil {
		var err error
		if s, err = newSliceReader(w.r, w.cv.ID, field); err != nil {
			return nil, err
		}
		w.slices[field] = s
	}
	s.seek(w.container)
	exists, err := s.slice(codec.SliceExists)
	if err != nil || exists == nil {
		return roaring.New(), err
	}
	return codec.Between(exists, func(bit int) (*codec.Container, error) {
		return s.slice(codec.SliceOf(bit))
	}, lo, hi)
}

// A sliceReader reads the slices of a field, container by container, of each as
// far as it is asked.
type sliceReader struct {
	it         *pebble.Iterator
	collection uint32
	field      uint16
	container  uint16
	begun      bool // container is set
	valid      bool // the iterator is at a slice of the container that is not read yet
	read       int  // slices before it are in slices
	slices     [codec.SliceCount]*codec.Container
	free       []*codec.Container
}

func newSliceReader(r pebble.Reader, collection uint32, field int) (*sliceReader, error) {
	prefix := codec.FieldRowsKey(collection, uint16(field), 0, "")
	prefix = prefix[:len(prefix)-2] // without the container
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: codec.PrefixEnd(prefix)})
	if err != nil {
		return nil, fault.ReadError(err, "rows of field %d", field)
	}
	return &sliceReader{it: it, collection: collection, field: uint16(field)}, nil
}

// seek goes to a container, or stays there.
func (s *sliceReader) seek(container uint16) {
	if s.begun && s.container == container {
		return
	}
	s.begun, s.container, s.read = true, container, 0
	for i, c := range s.slices {
		if c != nil {
			s.slices[i], s.free = nil, append(s.free, c)
		}
	}
	s.valid = s.it.SeekGE(codec.FieldRowsKey(s.collection, s.field, container, ""))
}

// slice returns a slice of the container, nil where it has none. It is valid until
// the reader seeks another.
func (s *sliceReader) slice(n byte) (*codec.Container, error) {
	for s.read <= int(n) {
		if !s.valid {
			// Nothing more: the container, or the field, is at its end.
			if err := s.it.Error(); err != nil {
				return nil, fault.ReadError(err, "rows of field %d", s.field)
			}
			s.read = codec.SliceCount
			break
		}
		key := s.it.Key()
		if err := codec.CheckKey(key); err != nil {
			return nil, fault.Corrupt(err, "key")
		}
		_, container, value := codec.FieldRowsKeyParts(key)
		if container != s.container {
			s.valid = false
			continue
		}
		if len(value) != 1 || value[0] >= codec.SliceCount {
			return nil, fault.Corrupt(fmt.Errorf("slice %x", value), "rows %x", key)
		}
		if value[0] > n {
			s.read = int(n) + 1
			break
		}
		b, err := s.it.ValueAndErr()
		if err != nil {
			return nil, fault.ReadError(err, "rows %x", key)
		}
		l, err := codec.DecodeLayer(b)
		if err != nil {
			return nil, fault.Corrupt(err, "rows %x", key)
		}
		c := new(codec.Container)
		if n := len(s.free); n > 0 {
			c, s.free = s.free[n-1], s.free[:n-1]
		}
		c.Set(l.Added)
		s.slices[value[0]], s.read = c, int(value[0])+1
		s.valid = s.it.Next()
	}
	return s.slices[n], nil
}
