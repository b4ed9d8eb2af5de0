package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/model"
)

// RowOf returns the row of the item with this key; found is false where there is none. It is
// one look-up by key, which the bloom filters of the store make cheap for keys that are not
// there.
func RowOf(r pebble.Reader, collection uint32, key string) (row uint32, found bool, err error) {
	value, closer, err := r.Get(codec.ItemKey(collection, key))
	if errors.Is(err, fault.ErrMissing) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fault.ReadError(err, "row of item %q", key)
	}
	defer closer.Close()
	if len(value) != 4 {
		return 0, false, fault.Corrupt(fmt.Errorf("%d bytes", len(value)), "row of item %q", key)
	}
	return binary.BigEndian.Uint32(value), true, nil
}

// BlockEntry calls f with the entry of a number, a row or a code number, in the block stored
// under key, and returns its error. Where there is no entry, or no block, f is not called and
// the error is nil. The entry is memory of the store, valid until f returns.
func BlockEntry(r pebble.Reader, key []byte, row uint32, f func(entry []byte) error) error {
	value, closer, err := r.Get(key)
	if errors.Is(err, fault.ErrMissing) {
		return nil
	}
	if err != nil {
		return fault.ReadError(err, "block %x", key)
	}
	defer closer.Close()
	b, err := codec.DecodeBlock(value)
	if err != nil {
		return fault.Corrupt(err, "block %x", key)
	}
	if entry, ok := b.Lookup(byte(row)); ok {
		return f(entry)
	}
	return nil
}

// ReadItem reads the item record of a row: labels, fields and payload, in memory of the
// caller's own. The row must have an item: a record that is missing is an ErrCorrupt.
func ReadItem(r pebble.Reader, collection, row uint32) (*codec.ItemRecord, error) {
	value, closer, err := r.Get(codec.NumberKey(codec.KindItem, collection, row))
	if err != nil {
		return nil, fault.ReadError(err, "item in row %d", row)
	}
	defer closer.Close()
	rec, err := codec.DecodeItemRecord(value)
	if err != nil {
		return nil, fault.Corrupt(err, "item in row %d", row)
	}
	return rec, nil
}

// ForEachItemIn calls f with the item records of the rows from lo up to, but without, hi, in order.
func ForEachItemIn(r pebble.Reader, collection, lo uint32, hi uint64,
	f func(row uint32, value []byte) error) error {
	end := codec.PrefixEnd(codec.CollectionKey(codec.KindItem, collection))
	if hi <= math.MaxUint32 {
		end = codec.NumberKey(codec.KindItem, collection, uint32(hi))
	}
	return ForEachIn(r, codec.NumberKey(codec.KindItem, collection, lo), end, func(key, value []byte) error {
		return f(codec.LastNumber(key), value)
	})
}

// ReadKey reads the key of the item in a row.
func ReadKey(r pebble.Reader, collection, row uint32) (string, error) {
	value, err := Get(r, codec.NumberKey(codec.KindRowKeys, collection, row/codec.BlockRows))
	if err != nil {
		return "", fault.ReadError(err, "key of row %d", row)
	}
	b, err := codec.DecodeBlock(value)
	if err != nil {
		return "", fault.Corrupt(err, "key of row %d", row)
	}
	entry, ok := b.Lookup(byte(row))
	if !ok {
		return "", fault.Corrupt(errors.New("no such row"), "key of row %d", row)
	}
	return string(entry), nil
}

// ReadVector reads the features of one modality of a row, in memory of the caller's own; found
// is false where the item lacks it. m is the modality at that position of the descriptor.
func ReadVector(r pebble.Reader, collection, row uint32, modality int,
	m Modality) (x model.Vector, found bool, err error) {
	value, closer, err := r.Get(codec.FeatureKey(collection, row, uint16(modality)))
	if errors.Is(err, fault.ErrMissing) {
		return x, false, nil
	}
	if err != nil {
		return x, false, fault.ReadError(err, "features %d of row %d", modality, row)
	}
	defer closer.Close()
	if err := m.DecodeVector(&x, value); err != nil {
		return x, false, fault.Corrupt(err, "features %d of row %d", modality, row)
	}
	return x, true, nil
}

// ReadRows reads one container of a stored set of rows, the layer under key: the low 16 bits
// of its rows, in a bitmap of the caller's own. It is empty where the store has none.
func ReadRows(r pebble.Reader, key []byte) (*roaring.Bitmap, error) {
	value, closer, err := r.Get(key)
	if errors.Is(err, fault.ErrMissing) {
		return roaring.New(), nil
	}
	if err != nil {
		return nil, fault.ReadError(err, "rows %x", key)
	}
	defer closer.Close()
	l, err := codec.DecodeLayer(value)
	if err != nil {
		return nil, fault.Corrupt(err, "rows %x", key)
	}
	return l.Added, nil
}

// AddRows adds the rows of a stored layer of a container to a bitmap; value has their low 16 bits. key serves
// only the text of errors.
func AddRows(into *roaring.Bitmap, key, value []byte, container uint16) error {
	l, err := codec.DecodeLayer(value)
	if err != nil {
		return fault.Corrupt(err, "rows %x", key)
	}
	into.Or(roaring.AddOffset64(l.Added, int64(container)<<16))
	return nil
}

// UnionOf returns the rows that have at least one of the modalities, in a bitmap of the
// caller's own. presence has the rows by modality.
func UnionOf(presence []*roaring.Bitmap, modalities []int) *roaring.Bitmap {
	rows := roaring.New()
	for _, t := range modalities {
		rows.Or(presence[t])
	}
	return rows
}

// ByContainer cuts a set of rows into the layers that store it: it calls f with each container
// that has rows, ascending, and a layer that adds their low 16 bits, which is f's own.
func ByContainer(rows *roaring.Bitmap, f func(container uint16, layer codec.Layer) error) error {
	it := rows.Iterator()
	for it.HasNext() {
		layer, container := codec.NewLayer(), uint16(it.PeekNext()>>16)
		for it.HasNext() && uint16(it.PeekNext()>>16) == container {
			layer.Added.Add(uint32(uint16(it.Next())))
		}
		if err := f(container, layer); err != nil {
			return err
		}
	}
	return nil
}

// NoLabel is the name of a label whose name was given to another label. It is not UTF-8, so no item can bring
// it, and it is distinct by the id.
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

// Retraction returns the retraction record of a space: the lesson l of a row, with the features of the row in
// the given modalities (positions in the collection, in any order). Read r as of the time when the row
// taught, because the retraction takes out what these features put in.
func Retraction(r pebble.Reader, d *Descriptor, modalities []int, row uint32,
	l codec.Lesson) (*codec.Retraction, error) {
	out := &codec.Retraction{Lesson: l}
	for _, t := range slices.Sorted(slices.Values(modalities)) {
		b, err := Get(r, codec.FeatureKey(d.ID, row, uint16(t)))
		if err != nil {
			return nil, fault.ReadError(err, "features %q of row %d", d.Modalities[t].Name, row)
		}
		if b != nil {
			out.Features = append(out.Features, codec.Feature{Modality: uint16(t), Record: b})
		}
	}
	return out, nil
}

// DecodeFeatures decodes the features of a retraction, by modality of the collection.
func (d *Descriptor) DecodeFeatures(features []codec.Feature) ([]model.Vector, error) {
	vectors := make([]model.Vector, len(d.Modalities))
	for _, f := range features {
		if int(f.Modality) >= len(vectors) {
			return nil, fmt.Errorf("it has features of modality %d of %d", f.Modality, len(vectors))
		}
		m := &d.Modalities[f.Modality]
		if err := m.DecodeVector(&vectors[f.Modality], f.Record); err != nil {
			return nil, fmt.Errorf("features %q: %w", m.Name, err)
		}
	}
	return vectors, nil
}

// ReadLesson returns the lesson of a row in a space whose codes have so many bits, in memory of the caller's
// own; found is false if the row has taught nothing.
func ReadLesson(r pebble.Reader, collection, space uint32, bits int,
	row uint32) (l codec.Lesson, found bool, err error) {
	err = BlockEntry(r, codec.LessonsKey(collection, space, row), row, func(entry []byte) error {
		found = true
		if l, err = codec.DecodeLesson(bits, entry); err != nil {
			return fault.Corrupt(err, "lesson of row %d", row)
		}
		l.Taught = l.Taught.Clone()
		return nil
	})
	return l, found && err == nil, err
}
