package record

import (
	"encoding/binary"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
)

// A Sink takes records, and keeps nothing of the slices: the batch of a commit, or a stream of
// sorted tables.
type Sink interface {
	Set(key, value []byte) error   // stores the value, replacing any other
	Merge(key, value []byte) error // stores an edit of the value, see codec.Merger
	Delete(key []byte) error       // deletes the record
}

// A Writer writes records to a sink. A transaction and a bulk load both write through it, so
// that an item is stored alike by either. It belongs to one goroutine, and has memory of its
// own for one record: writing takes none, once that has grown.
type Writer struct {
	sink       Sink
	key, value []byte
}

// keptBytes bounds the memory that a Writer keeps from one sink to the next.
const keptBytes = 64 << 10

// NewWriter returns a Writer to a sink.
func NewWriter(to Sink) *Writer { return &Writer{sink: to} }

// Reset makes the Writer write to another sink from now on.
func (w *Writer) Reset(to Sink) {
	w.sink = to
	if cap(w.value) > keptBytes {
		w.value = nil
	}
}

// Sequence writes the number of the commit.
func (w *Writer) Sequence(n uint64) error {
	w.key = append(w.key[:0], codec.KindDatabase, codec.RecordSequence)
	w.value = binary.BigEndian.AppendUint64(w.value[:0], n)
	return w.sink.Set(w.key, w.value)
}

// Mark writes a mark, or deletes it where it has no value.
func (w *Writer) Mark(m Mark) error {
	w.key = append(append(w.key[:0], codec.KindMark), m.Name...)
	if len(m.Value) == 0 {
		return w.sink.Delete(w.key)
	}
	return w.sink.Set(w.key, m.Value)
}

// Counters writes the counters of a collection.
func (w *Writer) Counters(collection uint32, n codec.Counters) error {
	w.key = append(w.key[:0], codec.CollectionKey(codec.KindCounters, collection)...)
	w.value = n.Append(w.value[:0])
	return w.sink.Set(w.key, w.value)
}

// Label writes the name of a label.
func (w *Writer) Label(collection, id uint32, name string) error {
	w.key = append(w.key[:0], codec.NumberKey(codec.KindLabel, collection, id)...)
	w.value = append(w.value[:0], name...)
	return w.sink.Set(w.key, w.value)
}

// Key writes the row of the item with a key.
func (w *Writer) Key(collection uint32, key string, row uint32) error {
	w.key = append(append(w.key[:0], codec.CollectionKey(codec.KindKey, collection)...), key...)
	w.value = binary.BigEndian.AppendUint32(w.value[:0], row)
	return w.sink.Set(w.key, w.value)
}

// Item writes labels, fields and payload of a row. A field value of a type that cannot be stored is an error.
func (w *Writer) Item(collection, row uint32, it codec.ItemRecord) error {
	b, err := it.Append(w.value[:0])
	if err != nil {
		return err
	}
	w.key, w.value = append(w.key[:0], codec.NumberKey(codec.KindItem, collection, row)...), b
	return w.sink.Set(w.key, w.value)
}

// Vector writes the features of a row in one modality; v has the form of the modality.
func (w *Writer) Vector(collection, row uint32, modality uint16, v model.Vector) error {
	w.value = AppendVector(w.value[:0], v)
	return w.Features(collection, row, modality, w.value)
}

// Features writes the feature record of a vector (AppendVector).
func (w *Writer) Features(collection, row uint32, modality uint16, features []byte) error {
	w.key = append(w.key[:0], codec.FeatureKey(collection, row, modality)...)
	return w.sink.Set(w.key, features)
}

// Block writes an edit of the block under key: whole if it is the entire block, else to be merged.
func (w *Writer) Block(key []byte, edit *codec.BlockEdit, whole bool) error {
	w.value = edit.Append(w.value[:0], whole)
	return w.put(key, whole)
}

// Layer writes a change of the set of rows under key: whole if it is the entire set, else to be merged.
func (w *Writer) Layer(key []byte, l codec.Layer, whole bool) (err error) {
	b, err := l.Append(w.value[:0], whole)
	if err != nil {
		return err
	}
	w.value = b
	return w.put(key, whole)
}

// Posting writes the numbers of codes that the posting under key gains and loses, both ascending: whole if
// they are the entire posting, else to be merged.
func (w *Writer) Posting(key []byte, added, deleted []uint32, whole bool) error {
	w.value = codec.AppendPosting(w.value[:0], added, deleted)
	return w.put(key, whole)
}

// put writes the value under a key that the caller has made.
func (w *Writer) put(key []byte, whole bool) error {
	w.key = append(w.key[:0], key...)
	if whole {
		return w.sink.Set(w.key, w.value)
	}
	return w.sink.Merge(w.key, w.value)
}
