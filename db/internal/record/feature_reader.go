package record

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/model"
)

// FeatureReader reads the features of rows in ascending order, in one pass over the store.
// Vectors are decoded into buffers that are used again for each row, so a pass over a million
// items allocates a few vectors. It is for one goroutine. Close it.
type FeatureReader struct {
	collection uint32
	it         *pebble.Iterator // at the first feature record that has not been read
	valid      bool             // it stands at a record, and not at the end or after an error
	modalities []Modality
	buffers    []model.Vector // by modality: the one read last; Hand takes it out
}

// NewFeatureReader returns a reader that stands before row from. It keeps the modalities of d.
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

// Close closes the iterator. Vectors that were handed over stay what they are.
func (f *FeatureReader) Close() error { return f.it.Close() }

// Seek fills vectors, one for each modality of the collection, with the features of the row,
// and the zero Vector where the row lacks one. Rows have to ascend from call to call. Rows in
// between are skipped by a seek of the iterator. The vectors are valid until the next call,
// but for those that Hand makes the caller's. A row without an item simply has no features:
// that is for the caller to know.
func (f *FeatureReader) Seek(vectors []model.Vector, row uint32) error {
	if f.valid {
		if at, _ := codec.FeatureKeyParts(f.it.Key()); at < row {
			f.valid = f.it.SeekGE(codec.FeatureKey(f.collection, row, 0))
		}
	}
	return f.read(vectors, row)
}

// read is Seek for the next rows: it steps over records in between one by one.
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

// Hand makes the vector of modality t that was read last the caller's: the next row gets
// another buffer.
func (f *FeatureReader) Hand(t int) { f.buffers[t] = model.Vector{} }

// ForEachItem calls f with every item from row from on, in order of rows, in one pass over
// item records and features side by side. vectors has one for each modality of the collection,
// the zero Vector where the item lacks it, and is valid until f returns. rec is f's own.
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
