package db

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/where"
)

// A WhereError says what is wrong with an expression of Query.Where and its like,
// and where. It is an ErrInvalid.
type WhereError struct {
	Column int // of the first character in question, from 1
	Reason string
}

func (e *WhereError) Error() string {
	return fmt.Sprintf("%v: where: column %d: %s", fault.ErrInvalid, e.Column, e.Reason)
}

// Is makes a WhereError an ErrInvalid.
func (e *WhereError) Is(target error) bool { return target == fault.ErrInvalid }

// ItemsWhere yields the items that match the expression, see Query.Where, in
// database order, as they are when the iteration starts; the empty one matches
// all, as Items. args are the values of its placeholders, see Query.Args. Only the items
// that match are read. An error ends it.
func (c *Collection) ItemsWhere(ctx context.Context, where string, args ...any) iter.Seq2[*Item, error] {
	c = c.orNone()
	return func(yield func(*Item, error) bool) {
		err := c.read(func(v *state.View, cv *state.CollectionView) error {
			rows, err := matching(ctx, cv, v.Snap, where, args)
			if err != nil || rows != nil && rows.IsEmpty() {
				return err
			}
			return eachItem(cv, v.Snap, rows, func(it *Item) error {
				switch {
				case ctx.Err() != nil:
					return ctx.Err()
				case !yield(it, nil):
					return errStopped
				}
				return nil
			})
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// CountWhere returns the number of items that match the expression, see
// Query.Where; the empty one matches all. args are the values of its placeholders, see
// Query.Args. It reads no item.
func (c *Collection) CountWhere(ctx context.Context, where string, args ...any) (int, error) {
	c = c.orNone()
	return c.CountUpTo(ctx, math.MaxInt, where, args...)
}

// CountUpTo is CountWhere that stops when it has found so many items, 1 or more; where it
// returns as many there may be more. It looks at 65,536 rows at a time.
func (c *Collection) CountUpTo(ctx context.Context, limit int, where string, args ...any) (int, error) {
	c = c.orNone()
	if limit < 1 {
		return 0, fault.Invalid("count up to %d items: 1 or more are possible", limit)
	}
	n := 0
	err := c.read(func(v *state.View, cv *state.CollectionView) error {
		if where == "" {
			n = cv.Items
			return noArgs(args)
		}
		return eachMatching(ctx, cv, v.Snap, where, args, func(_ uint16, found *roaring.Bitmap) bool {
			n += int(found.GetCardinality())
			return n < limit
		})
	})
	if err != nil {
		return 0, err
	}
	return min(n, limit), nil
}

// DeleteWhere deletes the items that match the expression, see Query.Where, all in
// one synced commit, and returns how many there were. args are the values of its
// placeholders, see Query.Args.
//
// What matches is decided when it is deleted: a write that comes back before
// DeleteWhere is called counts, and none comes in between. Other writers wait for
// as long as that takes. More than a commit can hold, some millions, or with what they
// have taught a GiB, is an ErrInvalid: narrow the expression.
//
// The empty expression is an ErrInvalid, as most likely the caller has lost one. To delete
// all items, drop the collection and create it again, or say
//
//	NOT label = ''
func (c *Collection) DeleteWhere(ctx context.Context, where string, args ...any) (int, error) {
	c = c.orNone()
	if err := c.db.state.Guard.Enter(); err != nil {
		return 0, err
	}
	defer c.db.state.Guard.Leave()
	if err := c.changeable(); err != nil {
		return 0, err
	}
	if where == "" {
		return 0, &WhereError{1, "an empty expression would delete all items: say NOT label = '' to delete them, or drop the collection"}
	}
	if err := c.inside().Loaded(ctx); err != nil {
		return 0, err
	}
	ctx, call := c.db.call(ctx, event.OpWrite, c.name)
	n := 0
	err := c.inside().Free(ctx, func(tx *state.Tx, s *state.CollectionState) (err error) {
		n, err = deleteWhere(ctx, tx, c.db.state.Current.Load(), s, where, args)
		tx.Empty = n == 0
		return err
	})
	c.db.counters.wrote(&call, n, err)
	if err != nil {
		return 0, err
	}
	c.db.state.Committer.Figures.Deleted.Add(uint64(n))
	return n, nil
}

// deleteWhere deletes what matches in the view, which is the present state.
func deleteWhere(ctx context.Context, tx *state.Tx, v *state.View, s *state.CollectionState, where string, args []any) (int, error) {
	cv, err := v.Collection(s.ID, s.Name)
	if err != nil {
		return 0, err
	}
	rows, err := matching(ctx, cv, v.Snap, where, args)
	if err != nil {
		return 0, err
	}
	return tx.DeleteItems(ctx, s, int(rows.GetCardinality()), func(f func(row uint32, key string) error) error {
		return forEachKey(cv, v.Snap, rows, f)
	})
}

// forEachKey calls f with the rows and the keys of their items, in order. It reads
// each block of keys once.
func forEachKey(cv *state.CollectionView, r pebble.Reader, rows *roaring.Bitmap, f func(row uint32, key string) error) error {
	for it := rows.Iterator(); it.HasNext(); {
		block := it.PeekNext() / codec.BlockRows
		value, err := record.Get(r, codec.NumberKey(codec.KindRowKeys, cv.ID, block))
		if err != nil {
			return fault.ReadError(err, "keys of block %d", block)
		}
		var keys codec.Block // empty where there is none
		if value != nil {
			if keys, err = codec.DecodeBlock(value); err != nil {
				return fault.Corrupt(err, "keys of block %d", block)
			}
		}
		for it.HasNext() && it.PeekNext()/codec.BlockRows == block {
			row := it.Next()
			entry, ok := keys.Lookup(byte(row))
			if !ok {
				return fault.Corrupt(errors.New("no such row"), "key of row %d", row)
			}
			if err := f(row, string(entry)); err != nil {
				return err
			}
		}
	}
	return nil
}

// matching returns the rows that match an expression, in a bitmap of the caller's
// own; nil for the empty one, which all match.
func matching(ctx context.Context, cv *state.CollectionView, r pebble.Reader, expr string, args []any) (*roaring.Bitmap, error) {
	if expr == "" {
		return nil, noArgs(args)
	}
	out := roaring.New()
	err := eachMatching(ctx, cv, r, expr, args, func(container uint16, found *roaring.Bitmap) bool {
		out.Or(roaring.AddOffset64(found, int64(container)<<16))
		return true
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// noArgs refuses arguments where there is no expression: the caller has lost it.
func noArgs(args []any) error {
	if len(args) == 0 {
		return nil
	}
	return &WhereError{1, fmt.Sprintf("there is no expression, and %d arguments are given", len(args))}
}

// eachMatching calls f with the rows that match an expression, container by container in
// ascending order, the low 16 bits of each; f returns false when it has had enough.
//
// It goes through the containers of live rows one by one, so that it needs no more
// memory than one container of what the expression names, however many rows there
// are, and what one part of an AND rules out is not looked up for the others.
func eachMatching(ctx context.Context, cv *state.CollectionView, r pebble.Reader, expr string, args []any, f func(container uint16, found *roaring.Bitmap) bool) error {
	parsed, err := where.Parse(expr, args...)
	if err != nil {
		return whereError(err)
	}
	filter, err := parsed.Check(columns{cv})
	if err != nil {
		return whereError(err)
	}
	rows := &whereRows{ctx: ctx, r: r, cv: cv, slices: map[int]*sliceReader{}}
	err = rows.eval(filter, f)
	for _, s := range rows.slices {
		if cerr := s.it.Close(); err == nil {
			err = fault.ReadError(cerr, "rows of a field")
		}
	}
	return err
}

// whereError brings an error about an expression into the terms of this package.
func whereError(err error) error {
	var e *where.Error
	if errors.As(err, &e) {
		return &WhereError{e.Column, e.Reason}
	}
	return err
}

// columns are what an expression can name of a collection.
type columns struct{ *state.CollectionView }

// Field implements where.Schema.
func (cv columns) Field(name string) (int, where.Type, error) {
	var indexed []record.Field
	for _, f := range cv.Fields {
		if f.Indexed {
			indexed = append(indexed, f)
		}
	}
	for i, f := range cv.Fields {
		if f.Name == name && f.Indexed {
			return i, whereTypes[f.Type], nil
		}
	}
	there := fmt.Sprintf("collection %q has no indexed fields", cv.Name)
	if len(indexed) > 0 {
		there = fmt.Sprintf("the indexed fields of collection %q are %s", cv.Name, record.Names(indexed))
	}
	if _, err := cv.FieldOf(name); err == nil {
		return 0, 0, fmt.Errorf("field %q is not indexed: %s", record.Shortened(name), there)
	}
	if strings.EqualFold(name, "labels") {
		return 0, 0, fmt.Errorf("unknown field %q: labels are asked for one at a time, label = 'cat'; %s", name, there)
	}
	return 0, 0, fmt.Errorf("unknown field %q: %s", record.Shortened(name), there)
}

var whereTypes = map[record.FieldType]where.Type{record.String: where.String, record.Int: where.Int, record.Float: where.Float, record.Bool: where.Bool}

// Modality implements where.Schema.
func (cv columns) Modality(name string) (int, error) {
	for i, m := range cv.Modalities {
		if m.Name == name {
			return i, nil
		}
	}
	if cv.CodesOnly() {
		return 0, fmt.Errorf("unknown modality %q: the items of collection %q bring codes", record.Shortened(name), cv.Name)
	}
	return 0, fmt.Errorf("unknown modality %q: collection %q has %s", record.Shortened(name), cv.Name, record.Names(cv.Modalities))
}

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
