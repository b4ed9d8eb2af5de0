package codec

import (
	"fmt"
	"slices"
)

// A Merger adds up the values that were written with Merge under one key: block edits,
// layers or postings, by the kind of the key. Newer operands win. Its results are
// associative, as the storage engine may add any run of neighbours before the rest:
// entries that an edit clears, and numbers that a layer or posting deletes, stay
// recorded until Finish is told that the oldest value is among the operands.
//
// The zero value is not ready: use NewMerger. It is not safe for concurrent use.
type Merger struct {
	kind  byte     // of the key
	newer [][]byte // copies, oldest first
	older [][]byte // copies, older than all of newer, youngest first
	room  []byte   // memory for copies: operands are often many and short
}

// An addition is how the values under one key add up.
type addition struct {
	sum   func(m *Merger, final bool) ([]byte, error) // see Merger.Finish
	empty func(value []byte) bool                     // see EmptySum
}

var (
	blocks   = addition{(*Merger).sumBlocks, isEmptyBlock}
	layers   = addition{(*Merger).sumLayers, isEmptyLayer}
	postings = addition{(*Merger).sumPostings, isEmptyPosting}
)

// additions has an entry for each kind whose values are written with Merge.
var additions = [256]addition{
	KindRowKeys:    blocks,
	KindRowCodes:   blocks,
	KindCodes:      blocks,
	KindProjection: blocks,
	KindLessons:    blocks,
	KindEntries:    blocks,

	KindCodeRows:   layers,
	KindRows:       layers,
	KindFieldRows:  layers,
	KindOnlineRows: layers,
	KindStale:      layers,

	KindSubstring: postings,
}

// Merged reports whether values of keys of this kind are written with Merge.
func Merged(kind byte) bool { return additions[kind].sum != nil }

// NewMerger starts with one operand for the key; it copies the value.
func NewMerger(key, value []byte) (*Merger, error) {
	if len(key) == 0 || !Merged(key[0]) {
		return nil, fmt.Errorf("%w: merge under key %x", ErrCorrupt, key)
	}
	m := &Merger{kind: key[0]}
	m.Newer(value)
	return m, nil
}

// Newer adds an operand newer than all so far; it copies the value.
func (m *Merger) Newer(value []byte) {
	m.newer = append(m.newer, m.keep(value))
}

// Older adds an operand older than all so far; it copies the value.
func (m *Merger) Older(value []byte) {
	m.older = append(m.older, m.keep(value))
}

// keep returns a copy of the value.
func (m *Merger) keep(value []byte) []byte {
	if cap(m.room)-len(m.room) < len(value) {
		m.room = make([]byte, 0, max(len(value), min(2*cap(m.room), 1<<16)))
	}
	from := len(m.room)
	m.room = append(m.room, value...)
	return m.room[from:len(m.room):len(m.room)]
}

// operands yields the operands, youngest first.
func (m *Merger) operands(yield func([]byte) bool) {
	for _, v := range slices.Backward(m.newer) {
		if !yield(v) {
			return
		}
	}
	for _, v := range m.older {
		if !yield(v) {
			return
		}
	}
}

// oldestFirst returns the operands, oldest first.
func (m *Merger) oldestFirst() [][]byte {
	all := slices.Clone(m.older)
	slices.Reverse(all)
	return append(all, m.newer...)
}

// Finish returns the sum of the operands. final says that the oldest value ever written
// under the key is among them.
func (m *Merger) Finish(final bool) ([]byte, error) { return additions[m.kind].sum(m, final) }

func (m *Merger) sumBlocks(final bool) ([]byte, error) {
	single := len(m.newer)+len(m.older) == 1
	var sum *BlockEdit
	for value := range m.operands {
		b, err := DecodeBlock(value)
		if err != nil {
			return nil, err
		}
		if single && (len(b.cleared) == 0 || !final) {
			return value, nil
		}
		if sum == nil {
			sum = NewBlockEdit(b.width)
		}
		if b.width != sum.width {
			return nil, fmt.Errorf("%w: block: entries of %d and %d bytes", ErrCorrupt, b.width, sum.width)
		}
		sum.Under(b)
	}
	return sum.Append(nil, final), nil
}

func (m *Merger) sumLayers(final bool) ([]byte, error) {
	sum := NewLayer()
	for _, value := range m.oldestFirst() {
		l, err := DecodeLayer(value)
		if err != nil {
			return nil, err
		}
		sum.apply(l)
	}
	return sum.compact().Append(nil, final)
}

func (m *Merger) sumPostings(final bool) ([]byte, error) {
	return addPostings(m.oldestFirst(), final)
}

// EmptySum reports whether a complete merged value is empty, so that its key may be
// deleted.
func EmptySum(key, value []byte) bool {
	return Merged(key[0]) && additions[key[0]].empty(value)
}

func isEmptyBlock(value []byte) bool {
	b, err := DecodeBlock(value)
	return err == nil && b.Len() == 0 && len(b.cleared) == 0
}

func isEmptyLayer(value []byte) bool {
	l, err := DecodeLayer(value)
	return err == nil && l.Added.IsEmpty() && l.Deleted.IsEmpty()
}

func isEmptyPosting(value []byte) bool { return len(value) == 1 && value[0] == 0 }
