package wire

import (
	"encoding/binary"
	"errors"
	"math"
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
