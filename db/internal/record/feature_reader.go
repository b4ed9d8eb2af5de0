package record

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/model"
)

// FeatureReader reads the features of rows in ascending order, in one pass over
// the store.
type FeatureReader struct {
	collection uint32
	it         *pebble.Iterator
	valid      bool
	modalities []Modality
	buffers    []model.Vector
}

func NewFeatureReader(r pebble.Reader, d *Descriptor, from uint32) (*FeatureReader, error) {
	end := codec.PrefixEnd(codec.CollectionKey(codec.KindFeatures, d.ID))
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: codec.FeatureKey(d.ID, from, 0), UpperBound: end})
	if err != nil {
		return nil, fault.ReadError(err, "features")
	}
	return &FeatureReader{
		collection: d.ID, it: it, valid: it.First(),
		modalities: d.Modalities, buffers: make([]model.Vector, len(d.Modalities)),
	}, nil
}

func (f *FeatureReader) Close() error { return f.it.Close() }

// Seek is read where rows in between are not wanted.
func (f *FeatureReader) Seek(vectors []model.Vector, row uint32) error {
	if f.valid {
		if at, _ := codec.FeatureKeyParts(f.it.Key()); at < row {
			f.valid = f.it.SeekGE(codec.FeatureKey(f.collection, row, 0))
		}
	}
	return f.read(vectors, row)
}

// read fills vectors with the features of the row, the zero Vector where it lacks one.
// They are valid until the next call.
func (f *FeatureReader) read(vectors []model.Vector, row uint32) error {
	clear(vectors)
	for ; f.valid; f.valid = f.it.Next() {
		if err := codec.CheckKey(f.it.Key()); err != nil {
			return fault.Corrupt(err, "key")
		}
		at, t := codec.FeatureKeyParts(f.it.Key())
		if at > row {
			break
		}
		if at < row {
			continue
		}
		value, err := f.it.ValueAndErr()
		if err != nil {
			return fault.ReadError(err, "features %d of row %d", t, row)
		}
		if int(t) >= len(vectors) {
			return fault.Corrupt(fmt.Errorf("modality %d of %d", t, len(vectors)), "features of row %d", row)
		}
		if err := f.modalities[t].DecodeVector(&f.buffers[t], value); err != nil {
			return fault.Corrupt(err, "features %d of row %d", t, row)
		}
		vectors[t] = f.buffers[t]
	}
	return fault.ReadError(f.it.Error(), "features of row %d", row)
}

// Hand makes the features of a modality that were read last the caller's.
func (f *FeatureReader) Hand(t int) { f.buffers[t] = model.Vector{} }

// ForEachItem calls f with every item from a row on, in order of rows; its vectors are
// valid until f returns.
func ForEachItem(r pebble.Reader, d *Descriptor, from uint32, f func(row uint32, rec *codec.ItemRecord, vectors []model.Vector) error) error {
	features, err := NewFeatureReader(r, d, from)
	if err != nil {
		return err
	}
	defer features.Close()
	vectors := make([]model.Vector, len(d.Modalities))
	end := codec.PrefixEnd(codec.CollectionKey(codec.KindItem, d.ID))
	return ForEachIn(r, codec.NumberKey(codec.KindItem, d.ID, from), end, func(key, value []byte) error {
		row := codec.LastNumber(key)
		rec, err := codec.DecodeItemRecord(value)
		if err != nil {
			return fault.Corrupt(err, "item in row %d", row)
		}
		if err := features.read(vectors, row); err != nil {
			return err
		}
		return f(row, rec, vectors)
	})
}
