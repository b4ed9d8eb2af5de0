package record

import (
	"errors"
	"fmt"
	"math"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
)

// NoLabel is the name of a label whose name was given to another label. It is not UTF-8, so that no
// item brings it, and no two labels have the same.
func NoLabel(id uint32) string { return fmt.Sprintf("\xff%d", id) }

// LabelRows returns the rows that carry the label with an id, in a bitmap of the caller's own.
// It reads one record for each container of 65,536 rows.
func LabelRows(r pebble.Reader, collection, id uint32) (*roaring.Bitmap, error) {
	rows := roaring.New()
	err := ForEach(r, codec.RowsPrefix(collection, codec.SetLabel, id), func(key, value []byte) error {
		_, _, container := codec.RowsKeyParts(key)
		return AddRows(rows, key, value, container)
	})
	return rows, err
}

// LabelInUse reports whether an item has the label with an id. It reads records of it up to the first that
// has a row, mostly one.
func LabelInUse(r pebble.Reader, collection, id uint32) (bool, error) {
	errFound := errors.New("found")
	err := ForEach(r, codec.RowsPrefix(collection, codec.SetLabel, id), func(key, value []byte) error {
		l, err := codec.DecodeLayer(value)
		switch {
		case err != nil:
			return fault.Corrupt(err, "rows %x", key)
		case !l.Added.IsEmpty():
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// LabelsInUse returns the ids of the labels that items have, ascending. A label that no item has
// any more keeps its id, and is not among them. For most labels it reads one record, however
// many items have it.
func LabelsInUse(r pebble.Reader, collection uint32) (ids []uint32, err error) {
	prefix := codec.SetPrefix(collection, codec.SetLabel)
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: codec.PrefixEnd(prefix)})
	if err != nil {
		return nil, fault.ReadError(err, "sets of labels")
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = fault.ReadError(cerr, "sets of labels")
		}
	}()
	for ok := it.First(); ok; {
		key := it.Key()
		if err := codec.CheckKey(key); err != nil {
			return nil, fault.Corrupt(err, "key")
		}
		_, id, _ := codec.RowsKeyParts(key)
		if n := len(ids); n > 0 && ids[n-1] == id { // further containers tell nothing new
			if id == math.MaxUint32 {
				return nil, fault.Corrupt(errors.New("no label has so great an id"), "rows %x", key)
			}
			ok = it.SeekGE(codec.RowsPrefix(collection, codec.SetLabel, id+1))
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, fault.ReadError(err, "rows %x", key)
		}
		l, err := codec.DecodeLayer(value)
		if err != nil {
			return nil, fault.Corrupt(err, "rows %x", key)
		}
		if !l.Added.IsEmpty() {
			ids = append(ids, id)
		}
		ok = it.Next()
	}
	return ids, fault.ReadError(it.Error(), "sets of labels")
}
