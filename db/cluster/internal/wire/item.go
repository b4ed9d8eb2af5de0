package wire

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/fxamacker/cbor/v2"

	"github.com/fddhdb/fddhdb/db"
)

// An Item is the form of a db.Item in messages. Vectors are bytes, several times faster than numbers.
type Item struct {
	_          struct{} `cbor:",toarray"`
	Key        string
	Labels     []string
	Fields     map[string]any
	Payload    []byte
	Code       []byte
	CodeFrom   string
	Dense      map[string]floats
	Sparse     map[string]sparse
	Modalities []string
}

type sparse struct {
	_     struct{} `cbor:",toarray"`
	Index ints
	Value floats
}

// floats are float32 in little-endian order, ints uint32.
type (
	floats []float32
	ints   []uint32
)

// ItemOf returns the form of an item in messages. It shares the item's parts; nil is nil.
func ItemOf(it *db.Item) *Item {
	if it == nil {
		return nil
	}
	w := &Item{
		Key: it.Key, Labels: it.Labels, Fields: it.Fields, Payload: it.Payload, Code: it.Code,
		CodeFrom:   it.CodeFrom,
		Modalities: it.Modalities,
	}
	if len(it.Vectors) > 0 {
		w.Dense = make(map[string]floats, len(it.Vectors))
		for name, v := range it.Vectors {
			w.Dense[name] = v
		}
	}
	if len(it.Sparse) > 0 {
		w.Sparse = make(map[string]sparse, len(it.Sparse))
		for name, v := range it.Sparse {
			w.Sparse[name] = sparse{Index: v.Index, Value: v.Value}
		}
	}
	return w
}

// Item returns the item, which shares the parts of w. Codes made by a database are part of answers, but not
// of items in operations.
func (w *Item) Item() *db.Item {
	if w == nil {
		return nil
	}
	it := &db.Item{
		Key: w.Key, Labels: w.Labels, Fields: w.Fields, Payload: w.Payload, Code: w.Code,
		CodeFrom:   w.CodeFrom,
		Modalities: w.Modalities,
	}
	if len(w.Dense) > 0 {
		it.Vectors = make(map[string][]float32, len(w.Dense))
		for name, v := range w.Dense {
			it.Vectors[name] = v
		}
	}
	if len(w.Sparse) > 0 {
		it.Sparse = make(map[string]db.Sparse, len(w.Sparse))
		for name, v := range w.Sparse {
			it.Sparse[name] = db.Sparse{Index: v.Index, Value: v.Value}
		}
	}
	return it
}

// MarshalCBOR implements cbor.Marshaler.
func (f floats) MarshalCBOR() ([]byte, error) {
	if f == nil { // no vector and an empty vector are different queries
		return encoding.Marshal(nil)
	}
	b := make([]byte, 0, 4*len(f))
	for _, x := range f {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return encoding.Marshal(b)
}

// UnmarshalCBOR implements cbor.Unmarshaler.
func (f *floats) UnmarshalCBOR(b []byte) error {
	words, err := words(b)
	if err != nil || words == nil {
		*f = nil
		return err
	}
	*f = make(floats, len(words)/4)
	for i := range *f {
		(*f)[i] = math.Float32frombits(binary.LittleEndian.Uint32(words[4*i:]))
	}
	return nil
}

// MarshalCBOR implements cbor.Marshaler.
func (n ints) MarshalCBOR() ([]byte, error) {
	b := make([]byte, 0, 4*len(n))
	for _, x := range n {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return encoding.Marshal(b)
}

// UnmarshalCBOR implements cbor.Unmarshaler.
func (n *ints) UnmarshalCBOR(b []byte) error {
	words, err := words(b)
	if err != nil {
		return err
	}
	*n = make(ints, len(words)/4)
	for i := range *n {
		(*n)[i] = binary.LittleEndian.Uint32(words[4*i:])
	}
	return nil
}

// words returns the bytes of a vector.
func words(b []byte) (words []byte, err error) {
	if err := decoding.Unmarshal(b, &words); err != nil {
		return nil, err
	}
	if len(words)%4 != 0 {
		return nil, fmt.Errorf("a vector of %d bytes", len(words))
	}
	return words, nil
}

var (
	_ cbor.Marshaler   = floats(nil)
	_ cbor.Unmarshaler = (*floats)(nil)
)
