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

// whereRows implements where.Rows for one container of a collection after the other. Its bitmaps have the low
// 16 bits of rows. Its methods, except Live, check ctx.
type whereRows struct {
	ctx context.Context
	r   pebble.Reader // the snapshot of the view
	cv  *state.CollectionView

	container uint16               // container being evaluated: row >> 16
	live      *roaring.Bitmap      // its rows that have an item
	labelled  *roaring.Bitmap      // labelled rows of all containers; nil: not read yet
	slices    map[int]*sliceReader // by field, made on first use; EachMatching closes them
	scan      *fieldScan           // of fields without an index; nil if the filter names none
}

// eval evaluates the filter for each container that has live rows, in ascending order, until f returns false.
// It leaves the slice readers open.
func (w *whereRows) eval(filter *where.Filter, f func(container uint16, found *roaring.Bitmap) bool) error {
	for it := w.cv.Live.Iterator(); it.HasNext(); {
		w.container = uint16(it.PeekNext() >> 16)
		w.live = w.part(w.cv.Live)
		if w.scan != nil {
			w.scan.begin(w.container)
		}
		found, err := filter.Eval(w)
		if err != nil || !f(w.container, found) || w.container == math.MaxUint16 {
			return err
		}
		it.AdvanceIfNeeded((uint32(w.container) + 1) << 16)
	}
	return nil
}

// part returns the rows of a set in the container, as low 16 bits in a new bitmap. The cost depends on the
// container, not on the set.
func (w *whereRows) part(rows *roaring.Bitmap) *roaring.Bitmap {
	from := uint64(w.container) << 16
	all := roaring.New()
	all.AddRange(from, from+1<<16)
	all.And(rows)
	return roaring.AddOffset64(all, -int64(from))
}

// Live implements where.Rows.
func (w *whereRows) Live() *roaring.Bitmap { return w.live }

// Modality implements where.Rows. Presence is in memory.
func (w *whereRows) Modality(id int) (*roaring.Bitmap, error) {
	return w.part(w.cv.Presence[id]), w.ctx.Err()
}

// Label implements where.Rows. It reads one layer of the store. A label that no item ever had has no rows.
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

// Labelled implements where.Rows. The first call reads all layers of labels, in one pass over the store.
// Reading them for each container would take many times as long.
func (w *whereRows) Labelled() (*roaring.Bitmap, error) {
	if w.labelled == nil {
		all := roaring.New()
		prefix := codec.SetPrefix(w.cv.ID, codec.SetLabel)
		n := 0
		err := record.ForEach(w.r, prefix, func(key, value []byte) error {
			if n++; n%1024 == 0 {
				if err := w.ctx.Err(); err != nil {
					return err
				}
			}
			_, _, container := codec.RowsKeyParts(key)
			return record.AddRows(all, key, value, container)
		})
		if err != nil {
			return nil, err
		}
		w.labelled = all
	}
	return w.part(w.labelled), w.ctx.Err()
}

// Valued implements where.Rows.
func (w *whereRows) Valued(field int) (*roaring.Bitmap, error) {
	if w.cv.Fields[field].Type == record.String {
		return w.Strings(field, where.Range{Open: true})
	}
	return w.between(field, 0, math.MaxUint64)
}

// Scan implements where.Rows.
func (w *whereRows) Scan(i int, among *roaring.Bitmap) (*roaring.Bitmap, error) {
	return w.scan.rows(w.container, i, among)
}

// Strings implements where.Rows. Each value of a string field has a layer of rows, and the keys of one
// container are in byte order of the values. So a range of values is a range of keys; Strings reads them all.
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

// Ints implements where.Rows.
func (w *whereRows) Ints(field int, lo, hi int64) (*roaring.Bitmap, error) {
	return w.between(field, codec.IntImage(lo), codec.IntImage(hi))
}

// Floats implements where.Rows.
func (w *whereRows) Floats(field int, lo, hi float64) (*roaring.Bitmap, error) {
	return w.between(field, codec.FloatImage(lo), codec.FloatImage(hi))
}

// Bools implements where.Rows.
func (w *whereRows) Bools(field int, value bool) (*roaring.Bitmap, error) {
	x := codec.BoolImage(value)
	return w.between(field, x, x)
}

// between returns the rows of the container whose value in a bit-sliced field has an image from lo to hi,
// both included. It reads at most 65 slices, see codec.Between.
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

// A sliceReader reads the slices of a bit-sliced field, container by container. The slices of a container
// follow each other in the store, from the highest bit down; a comparison reads them in this order and often
// stops early. So the reader moves one iterator forward, and keeps the slices for the next comparison with
// the field in the same container. It holds up to 65 containers of 8 KiB.
type sliceReader struct {
	it         *pebble.Iterator // over the slices of the field in all containers; EachMatching closes it
	collection uint32
	field      uint16

	container uint16 // current container; set if begun
	begun     bool   // seek has been called
	valid     bool   // the iterator is at a slice that is not in slices, see slice
	read      int    // slices with a smaller number are in slices, or do not exist

	slices [codec.SliceCount]*codec.Container // of the container; nil: not read, or absent
	free   []*codec.Container                 // memory of earlier containers, for reuse
}

// newSliceReader returns a reader without a position.
func newSliceReader(r pebble.Reader, collection uint32, field int) (*sliceReader, error) {
	prefix := codec.FieldPrefix(collection, uint16(field))
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: codec.PrefixEnd(prefix)})
	if err != nil {
		return nil, fault.ReadError(err, "rows of field %d", field)
	}
	return &sliceReader{it: it, collection: collection, field: uint16(field)}, nil
}

// seek goes to a container and makes slices of the container before invalid. If the reader is there already,
// it keeps its slices.
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

// slice returns slice number n of the container; nil if it does not exist, so no row has the bit. It reads
// until it has seen a slice with the number n or a greater one. The slice is valid until seek goes to another
// container; do not write to it.
func (s *sliceReader) slice(n byte) (*codec.Container, error) {
	for s.read <= int(n) {
		if !s.valid {
			// The container, or the field, has ended: no slices follow.
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
