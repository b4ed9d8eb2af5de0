package search

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/where"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// A fieldScan evaluates the tests of a filter on fields without an index. It reads the item records of one
// container after the other. It reads each record at most once for all tests, and only up to the last tested
// field.
type fieldScan struct {
	ctx    context.Context
	r      pebble.Reader // the snapshot of the view
	cv     *state.CollectionView
	scans  []where.Scan
	fields []scannedField // ascending by id
	known  *Scanned       // results from an earlier view; nil: none

	read  *roaring.Bitmap   // rows of the container that were read, as low 16 bits
	found []*roaring.Bitmap // by scan: rows read that pass it
}

// A scannedField is a field to read, with its tests.
type scannedField struct {
	id    uint32
	scans []int // positions in fieldScan.scans
}

// newFieldScan returns a fieldScan without a container; nil if there are no tests.
func newFieldScan(ctx context.Context, cv *state.CollectionView, r pebble.Reader, scans []where.Scan) *fieldScan {
	if len(scans) == 0 {
		return nil
	}
	s := &fieldScan{ctx: ctx, r: r, cv: cv, scans: scans}
	for i := range scans {
		id := uint32(scans[i].Field)
		at, there := slices.BinarySearchFunc(s.fields, id, func(f scannedField, id uint32) int { return int(f.id) - int(id) })
		if !there {
			s.fields = slices.Insert(s.fields, at, scannedField{id: id})
		}
		s.fields[at].scans = append(s.fields[at].scans, i)
	}
	return s
}

// begin starts another container.
func (s *fieldScan) begin(container uint16) {
	s.read, s.found = roaring.New(), make([]*roaring.Bitmap, len(s.scans))
	for i := range s.found {
		s.found[i] = roaring.New()
	}
	if s.known != nil {
		s.known.into(container, s)
	}
}

// rows returns the rows of the container that pass a test, among the rows read. These include the rows of
// among, which are live.
func (s *fieldScan) rows(container uint16, scan int, among *roaring.Bitmap) (*roaring.Bitmap, error) {
	if missing := roaring.AndNot(among, s.read); !missing.IsEmpty() {
		if err := s.readRows(container, missing.ToArray()); err != nil {
			return nil, err
		}
		s.read.Or(missing)
	}
	return s.found[scan], nil
}

// readRows reads rows, given as low 16 bits. It uses several goroutines for many rows.
func (s *fieldScan) readRows(container uint16, rows []uint32) error {
	const part = 8192 // fewest rows for a goroutine
	n := max(1, min(work.All(), len(rows)/part))
	found := make([][][]uint32, n) // by part and by scan
	err := work.Parallel(s.ctx, n, func(i int) error {
		found[i] = make([][]uint32, len(s.scans))
		return s.readPart(container, rows[len(rows)*i/n:len(rows)*(i+1)/n], found[i])
	})
	if err != nil {
		return err
	}
	for i := range found {
		for scan, rows := range found[i] {
			s.found[scan].AddMany(rows)
		}
	}
	return nil
}

// readPart reads rows and appends to found, by scan, the rows that pass it.
func (s *fieldScan) readPart(container uint16, rows []uint32, found [][]uint32) (err error) {
	row := func(low uint32) uint32 { return uint32(container)<<16 | low }
	first, last := row(rows[0]), row(rows[len(rows)-1])
	it, err := s.r.NewIter(&pebble.IterOptions{
		LowerBound: codec.NumberKey(codec.KindItem, s.cv.ID, first),
		UpperBound: append(codec.NumberKey(codec.KindItem, s.cv.ID, last), 0),
	})
	if err != nil {
		return fault.ReadError(err, "items in rows from %d on", first)
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = fault.ReadError(cerr, "items in rows from %d on", first)
		}
	}()
	it.First()
	for n, low := range rows {
		if n%1024 == 0 {
			if err := s.ctx.Err(); err != nil {
				return err
			}
		}
		if err := seekItem(it, s.cv.ID, row(low)); err != nil {
			return err
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return fault.ReadError(err, "item in row %d", row(low))
		}
		if err := s.test(value, low, found); err != nil {
			return fault.Corrupt(err, "item in row %d", row(low))
		}
	}
	return nil
}

// itemKeyBytes is the length of the key of an item record, which ends with the row.
var itemKeyBytes = len(codec.NumberKey(codec.KindItem, 0, 0))

// seekItem moves an iterator over item records forward to a row, which must exist.
func seekItem(it *pebble.Iterator, collection, row uint32) error {
	const near = 16 // this many steps cost no more than a seek
	for steps := 0; it.Valid(); steps++ {
		key := it.Key()
		if len(key) != itemKeyBytes { // CheckKey would double the cost
			return fault.Corrupt(codec.CheckKey(key), "key")
		}
		switch at := binary.BigEndian.Uint32(key[len(key)-4:]); {
		case at == row:
			return nil
		case at > row:
			return fault.Corrupt(errors.New("missing"), "item in row %d", row)
		case steps < near:
			it.Next()
		default:
			it.SeekGE(codec.NumberKey(codec.KindItem, collection, row))
		}
	}
	if err := it.Error(); err != nil {
		return fault.ReadError(err, "item in row %d", row)
	}
	return fault.Corrupt(errors.New("missing"), "item in row %d", row)
}

// test evaluates the tests of a row on its record. It stops behind the last tested field.
func (s *fieldScan) test(value []byte, low uint32, found [][]uint32) error {
	fields := codec.FieldsOf(value)
	more := fields.Next()
	for i := range s.fields {
		f := &s.fields[i]
		for more && fields.ID < f.id {
			more = fields.Next()
		}
		if !more {
			return fields.Err()
		}
		if fields.ID > f.id {
			continue
		}
		if want := &s.cv.Fields[f.id]; record.StoredType(fields.Type) != want.Type {
			return fmt.Errorf("field %q is of type %s, its value of type %s", want.Name, want.Type, record.StoredType(fields.Type))
		}
		for _, scan := range f.scans {
			if matches(&s.scans[scan], &fields.StoredField) {
				found[scan] = append(found[scan], low)
			}
		}
	}
	return nil
}

// matches reports whether a stored value passes a test of its type.
func matches(s *where.Scan, f *codec.StoredField) bool {
	switch s.Type {
	case where.String:
		return s.String(f.Text)
	case where.Int, where.Time:
		return s.Int(int64(f.Bits))
	case where.Float:
		return s.Float(math.Float64frombits(f.Bits))
	}
	return s.Bool(f.Bits == 1)
}
