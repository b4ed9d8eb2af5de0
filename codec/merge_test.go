package codec

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"
)

// mergeSomehow adds the operands, oldest first, as a storage engine might: it replaces
// neighbours by their sum in an arbitrary order, fed from either side. Only a sum that
// holds the oldest may be final.
func mergeSomehow(t *rapid.T, key []byte, operands [][]byte) []byte {
	for len(operands) > 1 {
		from := rapid.IntRange(0, len(operands)-2).Draw(t, "from")
		to := rapid.IntRange(from+2, len(operands)).Draw(t, "to")
		start := rapid.IntRange(from, to-1).Draw(t, "start")
		m, err := NewMerger(key, operands[start])
		if err != nil {
			t.Fatal(err)
		}
		for older, newer := start-1, start+1; older >= from || newer < to; {
			if older >= from && (newer >= to || rapid.Bool().Draw(t, "older")) {
				m.Older(operands[older])
				older--
			} else {
				m.Newer(operands[newer])
				newer++
			}
		}
		sum, err := m.Finish(from == 0 && rapid.Bool().Draw(t, "final"))
		if err != nil {
			t.Fatal(err)
		}
		operands = append(append(append([][]byte{}, operands[:from]...), sum), operands[to:]...)
	}
	m, err := NewMerger(key, operands[0])
	if err != nil {
		t.Fatal(err)
	}
	sum, err := m.Finish(true)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestBlocksMergeLikeAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.SampledFrom([]int{-1, 0, 1, 10}).Draw(t, "width")
		want := map[byte]string{}
		var operands [][]byte
		for range rapid.IntRange(1, 12).Draw(t, "edits") {
			e := NewBlockEdit(width)
			changes := rapid.IntRange(0, 30).Draw(t, "changes")
			if rapid.IntRange(0, 5).Draw(t, "whole") == 0 {
				changes = BlockRows
			}
			for i := range changes {
				off := byte(i)
				if changes < BlockRows {
					off = rapid.Byte().Draw(t, "offset")
				}
				if changes < BlockRows && rapid.IntRange(0, 3).Draw(t, "clear") == 0 {
					e.Clear(off)
					delete(want, off)
					continue
				}
				n := width
				if width < 0 {
					n = rapid.IntRange(0, 5).Draw(t, "length")
				}
				entry := bytes.Repeat([]byte{rapid.Byte().Draw(t, "fill")}, n)
				e.Set(off, entry)
				want[off] = string(entry)
			}
			operands = append(operands, e.Append(nil, false))
		}
		kind := rapid.SampledFrom([]byte{KindRowCodes, KindCodes, KindProjection}).Draw(t, "kind")
		b, err := DecodeBlock(mergeSomehow(t, SpaceBlockKey(kind, 1, 1, 0), operands))
		if err != nil {
			t.Fatal(err)
		}
		got := map[byte]string{}
		for i := range b.Len() {
			got[b.Offset(i)] = string(b.Entry(i))
		}
		if !maps.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if len(b.cleared) != 0 {
			t.Fatal("a final block remembers what was cleared")
		}
		for off := range BlockRows {
			entry, ok := b.Lookup(byte(off))
			if s, set := want[byte(off)]; ok != set || string(entry) != s {
				t.Fatalf("offset %d: %q %v, want %q %v", off, entry, ok, s, set)
			}
		}
	})
}

func TestLayersMergeLikeASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := map[uint32]bool{}
		var operands [][]byte
		for range rapid.IntRange(1, 12).Draw(t, "layers") {
			l := NewLayer()
			for range rapid.IntRange(0, 20).Draw(t, "changes") {
				x := uint16(rapid.SampledFrom([]int{0, 1, 2, 3, 4, 255, 4096, 65535}).Draw(t, "x"))
				if rapid.Bool().Draw(t, "add") {
					l.Add(x)
					want[uint32(x)] = true
				} else {
					l.Delete(x)
					delete(want, uint32(x))
				}
			}
			b, err := l.Append(nil, false)
			if err != nil {
				t.Fatal(err)
			}
			operands = append(operands, b)
		}
		key := rapid.SampledFrom([][]byte{
			RowsKey(1, SetLive, 0, 0), CodeRowsKey(1, 1, 5, 0), FieldRowsKey(1, 0, 0, "v"),
			FieldWordsKey(1, 0, 0, "t"),
		}).Draw(t, "key")
		l, err := DecodeLayer(mergeSomehow(t, key, operands))
		if err != nil {
			t.Fatal(err)
		}
		got := map[uint32]bool{}
		for _, x := range l.Added.ToArray() {
			got[x] = true
		}
		if !maps.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if !l.Deleted.IsEmpty() {
			t.Fatal("a final layer remembers deletions")
		}
	})
}

// The last three containers of all numbers, so that edits meet and fill some.
func TestPostingsMergeLikeASet(t *testing.T) {
	const first = 1<<32 - 3<<16
	rapid.Check(t, func(t *rapid.T) {
		var set [3 << 16]bool
		var operands [][]byte
		bitmaps := rapid.Bool().Draw(t, "bitmaps")
		for range rapid.IntRange(1, 12).Draw(t, "edits") {
			edit := map[int]bool{}
			for range rapid.IntRange(0, 10).Draw(t, "changes") {
				x := rapid.SampledFrom([]int{0, 1, 2, 127, 128, 300, 65535, 65536, 90000, 3<<16 - 1}).Draw(t,
					"x")
				edit[x] = rapid.Bool().Draw(t, "add")
			}
			if bitmaps && rapid.Bool().Draw(t, "stretch") {
				from := rapid.SampledFrom([]int{0, 30000, 65536, 131072}).Draw(t, "from")
				step := rapid.SampledFrom([]int{1, 2, 9}).Draw(t, "step")
				add := rapid.IntRange(0, 2).Draw(t, "delete") > 0
				for x := from; x < from+65536; x += step {
					edit[x] = add
				}
			}
			var added, deleted []uint32
			for _, x := range slices.Sorted(maps.Keys(edit)) {
				if set[x] = edit[x]; set[x] {
					added = append(added, uint32(first+x))
				} else {
					deleted = append(deleted, uint32(first+x))
				}
			}
			operands = append(operands, AppendPosting(nil, added, deleted))
		}
		key := SubstringKey(1, 1, 0, 3)
		var want []uint32
		for x, in := range set {
			if in {
				want = append(want, uint32(first+x))
			}
		}
		got := mergeSomehow(t, key, operands)
		if !bytes.Equal(got, AppendPosting(nil, want, nil)) { // each set has one form
			added, deleted, err := DecodePosting(got)
			t.Fatalf("got +%v -%v (%v), want %v", added, deleted, err, want)
		}
	})
}

// Merged layers are quick to read: they have runs only if there are few.
func TestMergedLayersHaveFewRuns(t *testing.T) {
	for _, tc := range []struct {
		row  func(i int) int
		rows int
		runs bool
	}{
		{func(i int) int { return i }, 1 << 16, true},
		{func(i int) int { return i * 3 / 2 }, 40000, false},         // every third number is missing
		{func(i int) int { return i/500*600 + i%500 }, 50000, true},  // 100 runs
		{func(i int) int { return i/100*120 + i%100 }, 50000, false}, // 500 runs
		{func(i int) int { return 9 * i }, 20, false},
	} {
		key := RowsKey(1, SetLabel, 2, 3)
		var m *Merger
		want := roaring.New()
		for part := range 4 {
			l := NewLayer()
			for i := part; i < tc.rows; i += 4 {
				l.Add(uint16(tc.row(i)))
				want.Add(uint32(tc.row(i)))
			}
			b, err := l.Append(nil, false)
			if err != nil {
				t.Fatal(err)
			}
			if m != nil {
				m.Newer(b)
			} else if m, err = NewMerger(key, b); err != nil {
				t.Fatal(err)
			}
		}
		b, err := m.Finish(true)
		if err != nil {
			t.Fatal(err)
		}
		l, err := DecodeLayer(b)
		if err != nil {
			t.Fatal(err)
		}
		if !l.Added.Equals(want) || l.Added.HasRunCompression() != tc.runs || len(b) > 8300 {
			t.Errorf("%d rows: %d, runs: %v, %d bytes", tc.rows, l.Added.GetCardinality(),
				l.Added.HasRunCompression(), len(b))
		}
	}
}

func TestMergeRefuses(t *testing.T) {
	if _, err := NewMerger(NumberKey(KindItem, 1, 2), nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("merge of an item: %v", err)
	}
	key := NumberKey(KindRowKeys, 1, 0)
	one, two := NewBlockEdit(1), NewBlockEdit(2)
	one.Set(0, []byte{1})
	two.Set(0, []byte{1, 2})
	m, err := NewMerger(key, one.Append(nil, false))
	if err != nil {
		t.Fatal(err)
	}
	m.Newer(two.Append(nil, false))
	if _, err := m.Finish(true); !errors.Is(err, ErrCorrupt) {
		t.Errorf("blocks of two widths: %v", err)
	}
	if m, err = NewMerger(key, []byte("nonsense")); err == nil {
		_, err = m.Finish(true)
	}
	if !errors.Is(err, ErrCorrupt) {
		t.Errorf("nonsense: %v", err)
	}
}

// Bytes that are no layer, or one that says two things of a number, are refused.
func TestDecodeLayerRefuses(t *testing.T) {
	l := NewLayer()
	l.Add(3)
	l.Delete(4)
	good, err := l.Append(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeLayer(good); err != nil {
		t.Fatal(err)
	}
	l.Deleted.Add(3)
	both, err := l.Append(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string][]byte{
		"nothing":                            nil,
		"another version":                    append([]byte{2}, good[1:]...),
		"cut":                                good[:len(good)-1],
		"a byte more":                        append(good[:len(good):len(good)], 0),
		"additions that are longer than all": {layerVersion, 100, 1},
		"a number that is added and deleted": both,
	} {
		if l, err := DecodeLayer(b); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %+v, %v", what, l, err)
		}
	}
}

// No entry of a block is longer than MaxBlockEntry, whether all have one length or not.
func TestDecodeBlockRefusesLongEntries(t *testing.T) {
	for _, size := range []int{MaxBlockEntry, MaxBlockEntry + 1} {
		for _, width := range []int{size, variableWidth} {
			e := NewBlockEdit(width)
			e.Set(7, make([]byte, size))
			if _, err := DecodeBlock(e.Append(nil, true)); errors.Is(err,
				ErrCorrupt) != (size > MaxBlockEntry) {
				t.Errorf("an entry of %d bytes, width %d: %v", size, width, err)
			}
		}
	}
}
