package wire

import (
	"encoding/binary"
	"errors"
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

// hits are encoded as one string of bytes, with their items, if any, behind it: encoding each part of a hit
// took most of the message time of a search of several shards.
//
//	    for each hit
//	u8  which parts are not 0: bits of hasScore, hasSimilarity, hasCursor
//	    key, as a varint with its length and its bytes
//	    row and distance, varints
//	u64 bits of the score, if there is one
//	u32 bits of the similarity, if there is one
//	    cursor, as the key, if there is one
//
// Numbers are little-endian.
type hits []Hit

const (
	hasScore = 1 << iota
	hasSimilarity
	hasCursor
)

// packed is the encoded form of hits.
type packed struct {
	_     struct{} `cbor:",toarray"`
	N     int
	Bytes []byte
	Items []*Item // of each hit, or none
}

var errHits = errors.New("hits that are not whole")

// MarshalCBOR implements cbor.Marshaler.
func (hs hits) MarshalCBOR() ([]byte, error) {
	size := 0
	for i := range hs {
		size += 24 + len(hs[i].Key) + len(hs[i].Cursor)
	}
	p := packed{N: len(hs), Bytes: make([]byte, 0, size)}
	b := p.Bytes
	for i := range hs {
		h := &hs[i]
		score, similarity := math.Float64bits(h.Score), math.Float32bits(h.Similarity)
		var has byte
		if score != 0 {
			has |= hasScore
		}
		if similarity != 0 {
			has |= hasSimilarity
		}
		if h.Cursor != "" {
			has |= hasCursor
		}
		b = append(b, has)
		b = append(binary.AppendUvarint(b, uint64(len(h.Key))), h.Key...)
		b = binary.AppendUvarint(b, uint64(h.Row))
		b = binary.AppendVarint(b, int64(h.Distance))
		if has&hasScore != 0 {
			b = binary.LittleEndian.AppendUint64(b, score)
		}
		if has&hasSimilarity != 0 {
			b = binary.LittleEndian.AppendUint32(b, similarity)
		}
		if has&hasCursor != 0 {
			b = append(binary.AppendUvarint(b, uint64(len(h.Cursor))), h.Cursor...)
		}
		if h.Item != nil && p.Items == nil {
			p.Items = make([]*Item, len(hs))
		}
		if h.Item != nil {
			p.Items[i] = h.Item
		}
	}
	p.Bytes = b
	return encoding.Marshal(p)
}

// UnmarshalCBOR implements cbor.Unmarshaler.
func (hs *hits) UnmarshalCBOR(b []byte) error {
	var p packed
	if err := decoding.Unmarshal(b, &p); err != nil {
		return err
	}
	if p.N < 0 || p.N > len(p.Bytes) || len(p.Items) > 0 && len(p.Items) != p.N { // a hit has some bytes
		return errHits
	}
	r := reader{b: p.Bytes, s: string(p.Bytes)}
	all := make(hits, p.N)
	for i := range all {
		h := &all[i]
		has := r.next(1)
		if has == nil {
			return errHits
		}
		h.Key = r.text()
		row, distance := r.uvarint(), r.varint()
		if row > math.MaxUint32 || int64(int(distance)) != distance {
			return errHits
		}
		h.Row, h.Distance = uint32(row), int(distance)
		if has[0]&hasScore != 0 {
			if f := r.next(8); f != nil {
				h.Score = math.Float64frombits(binary.LittleEndian.Uint64(f))
			}
		}
		if has[0]&hasSimilarity != 0 {
			if f := r.next(4); f != nil {
				h.Similarity = math.Float32frombits(binary.LittleEndian.Uint32(f))
			}
		}
		if has[0]&hasCursor != 0 {
			h.Cursor = r.text()
		}
		if len(p.Items) > 0 {
			h.Item = p.Items[i]
		}
	}
	if r.bad || r.at != len(r.b) {
		return errHits
	}
	*hs = all
	return nil
}

// A reader reads bytes, and remembers whether there were too few.
type reader struct {
	b   []byte
	s   string // the same bytes; all texts share them
	at  int
	bad bool
}

// next returns the next n bytes; nil if there are fewer.
func (r *reader) next(n uint64) []byte {
	if r.bad || n > uint64(len(r.b)-r.at) {
		r.bad = true
		return nil
	}
	from := r.at
	r.at += int(n)
	return r.b[from:r.at]
}

func (r *reader) text() string {
	n := r.uvarint()
	if r.next(n) == nil {
		return ""
	}
	return r.s[r.at-int(n) : r.at]
}

func (r *reader) uvarint() uint64 {
	x, n := binary.Uvarint(r.b[r.at:])
	r.moved(n)
	return x
}

func (r *reader) varint() int64 {
	x, n := binary.Varint(r.b[r.at:])
	r.moved(n)
	return x
}

// moved advances by a varint of n bytes.
func (r *reader) moved(n int) {
	if n <= 0 {
		r.bad = true
		return
	}
	r.at += n
}
