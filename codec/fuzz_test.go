package codec

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
)

// Decoders read arbitrary bytes: they refuse with ErrCorrupt, or the result encodes to
// bytes that decode to the same.

func FuzzBlock(f *testing.F) {
	for _, width := range []int{-1, 0, 3} {
		e := NewBlockEdit(width)
		f.Add(e.Append(nil, false))
		for off := range 5 {
			e.Set(byte(off*off), make([]byte, max(width, off%3)*min(1, width+1)+max(0, -width)*off))
		}
		e.Clear(200)
		f.Add(e.Append(nil, false))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		blk, err := DecodeBlock(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		e := NewBlockEdit(blk.Width())
		e.Under(blk)
		again, err := DecodeBlock(e.Append(nil, false))
		if err != nil {
			t.Fatal(err)
		}
		if again.Len() != len(e.setOffsets()) {
			t.Fatalf("%d entries became %d", len(e.setOffsets()), again.Len())
		}
		for i := range again.Len() {
			if entry, known := e.Lookup(again.Offset(i)); !known || !bytes.Equal(entry, again.Entry(i)) {
				t.Fatalf("entry %d changed", i)
			}
		}
	})
}

// setOffsets lists the offsets that the edit sets.
func (e *BlockEdit) setOffsets() (set []byte) {
	for off, s := range e.state {
		if s == entrySet {
			set = append(set, byte(off))
		}
	}
	return set
}

func FuzzLayer(f *testing.F) {
	l := NewLayer()
	for _, x := range []uint16{1, 2, 3, 1000, 65535} {
		l.Add(x)
	}
	l.Delete(7)
	b, _ := l.Append(nil, false)
	f.Add(b)
	for x := range uint16(40) {
		l.Add(1000 + x)
	}
	l.Added.RunOptimize()
	b, _ = l.Append(nil, true)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := DecodeLayer(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		enc, err := l.Append(nil, false)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeLayer(enc)
		if err != nil {
			t.Fatal(err)
		}
		if !again.Added.Equals(l.Added) || !again.Deleted.Equals(l.Deleted) {
			t.Fatal("layer changed")
		}
	})
}

func FuzzDecodePosting(f *testing.F) {
	f.Add(AppendPosting(nil, []uint32{1, 200, 70000}, []uint32{0, 1 << 31}))
	f.Add(AppendPosting(nil, nil, []uint32{5}))
	f.Add(append([]byte{postingBitmap}, withoutRuns([]uint32{1, 2, 3, 1 << 20})...))
	f.Fuzz(func(t *testing.T, b []byte) {
		added, deleted, err := DecodePosting(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if n := len(added) + len(deleted); 4*n > 32*len(b) {
			t.Fatalf("%d numbers in %d bytes", n, len(b))
		}
		enc := AppendPosting(nil, added, deleted)
		if len(enc) > len(b) {
			t.Fatalf("%d bytes became %d", len(b), len(enc))
		}
		a, d, err := DecodePosting(enc)
		if err != nil || !slices.Equal(a, added) || !slices.Equal(d, deleted) {
			t.Fatalf("+%v -%v became +%v -%v, %v", added, deleted, a, d, err)
		}
		codes, err := AppendPostingCodes(nil, b)
		if err != nil || !slices.Equal(codes, added) {
			t.Fatalf("got codes %v of %v, %v", codes, added, err)
		}
	})
}

// Merging postings of arbitrary bytes fails if an operand does not decode, and else
// gives the result of a replay.
func FuzzMergePostings(f *testing.F) {
	short := AppendPosting(nil, []uint32{1, 200, 70000}, []uint32{0, 1 << 31})
	dense := withoutRuns([]uint32{1, 2, 3, 1 << 20})
	bitmap := append([]byte{postingBitmap | postingDeltas<<4, byte(len(dense))}, dense...)
	bitmap = append(bitmap, 5)
	f.Add(short, bitmap, short, true)
	f.Add(bitmap, short, AppendPosting(nil, nil, []uint32{1, 2}), false)
	f.Fuzz(func(t *testing.T, one, two, three []byte, final bool) {
		in := map[uint32]bool{}
		bad := false
		for _, b := range [][]byte{one, two, three} {
			added, deleted, err := DecodePosting(b)
			bad = bad || err != nil
			for _, x := range added {
				in[x] = true
			}
			for _, x := range deleted {
				in[x] = false
			}
		}
		m, err := NewMerger(SubstringKey(1, 1, 0, 0), two)
		if err != nil {
			t.Fatal(err)
		}
		m.Newer(three)
		m.Older(one)
		sum, err := m.Finish(final)
		if bad {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("merge of bytes that do not decode: %x, %v", sum, err)
			}
			return
		}
		var added, deleted []uint32
		for _, x := range slices.Sorted(maps.Keys(in)) {
			if in[x] {
				added = append(added, x)
			} else if !final {
				deleted = append(deleted, x)
			}
		}
		want := AppendPosting(nil, added, deleted)
		if err != nil || !bytes.Equal(sum, want) {
			t.Fatalf("got %x, %v, want %x", sum, err, want)
		}
	})
}

func FuzzCounters(f *testing.F) {
	f.Add(Counters{NextRow: 5, Items: 3, NextSpace: 2}.Append(nil))
	f.Add(Counters{NextRow: 300, NextSpace: 9, ActiveSpace: 1, PreviousSpace: 7, Spaces: []SpaceCounters{
		{ID: 1, Revision: 3, Checkpoint: 2, CodeCounters: CodeCounters{300, 100, 2, 2}},
		{ID: 8, Building: true, Activate: true, Revision: 1, Built: 256, Taught: 4, NextRetraction: 2,
			CodeCounters: CodeCounters{1, 1, 1, 1}},
	}}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := DecodeCounters(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if again, err := DecodeCounters(c.Append(nil)); err != nil || !reflect.DeepEqual(again, c) {
			t.Fatalf("%+v became %+v, %v", c, again, err)
		}
	})
}

func FuzzItemRecord(f *testing.F) {
	for _, r := range sampleRecords {
		b, _ := r.Append(nil)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeItemRecord(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			for fields := FieldsOf(b); fields.Next(); { // ends, and reads nothing behind b
			}
			return
		}
		var read []Field
		fields := FieldsOf(b)
		for fields.Next() {
			read = append(read, Field{fields.ID, fields.value()})
		}
		if err := fields.Err(); err != nil || fmt.Sprint(read) != fmt.Sprint(r.Fields) { // NaN is itself
			t.Fatalf("fields %v, %v, want %v", read, err, r.Fields)
		}
		enc, err := r.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeItemRecord(enc)
		if err != nil {
			t.Fatal(err)
		}
		enc2, err := again.Append(nil)
		if err != nil || !bytes.Equal(enc, enc2) {
			t.Fatalf("record changed: %x, %x, %v", enc, enc2, err)
		}
	})
}

func FuzzMerge(f *testing.F) {
	e := NewBlockEdit(2)
	e.Set(3, []byte{1, 2})
	f.Add(true, e.Append(nil, false), e.Append(nil, true))
	l, _ := NewLayer().Append(nil, false)
	f.Add(false, l, l)
	f.Fuzz(func(t *testing.T, block bool, a, b []byte) {
		key := RowsKey(1, SetLive, 0, 0)
		if block {
			key = NumberKey(KindRowKeys, 1, 0)
		}
		m, err := NewMerger(key, a)
		if err != nil {
			t.Fatal(err)
		}
		m.Newer(b)
		if _, err := m.Finish(true); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
	})
}

func FuzzSparseFeatures(f *testing.F) {
	f.Add(uint16(10), AppendSparseFeatures(nil, nil, nil))
	f.Add(uint16(500), AppendSparseFeatures(nil, []uint32{0, 7, 300, 499}, []float32{1, -2, 3, 1e-40}))
	f.Fuzz(func(t *testing.T, dim uint16, b []byte) {
		index, value, err := AppendDecodedSparse(nil, nil, int(dim), b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		for e, j := range index {
			if j >= uint32(dim) || e > 0 && j <= index[e-1] || value[e] == 0 || value[e]-value[e] != 0 {
				t.Fatalf("%v %v", index, value)
			}
		}
		again, values, err := AppendDecodedSparse(nil, nil, int(dim), AppendSparseFeatures(nil, index, value))
		if err != nil || !slices.Equal(again, index) || !slices.Equal(values, value) {
			t.Fatalf("%v %v became %v %v (%v)", index, value, again, values, err)
		}
	})
}

func FuzzRetraction(f *testing.F) {
	lesson := Lesson{3, Taught{Codes: []byte{1, 2, 3, 4, 5, 6, 7, 8}}}
	f.Add((&Retraction{Lesson: lesson}).Append(nil))
	f.Add((&Retraction{lesson, []Feature{{0, []byte{1, 2}}, {7, nil}}}).Append(nil))
	f.Add((&Retraction{Lesson{3, Taught{Labels: []uint32{0, 1, 300}}}, nil}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := DecodeRetraction(64, b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		again, err := DecodeRetraction(64, d.Append(nil))
		if err != nil || !reflect.DeepEqual(again, d) {
			t.Fatalf("%v: %+v, then %+v", err, d, again)
		}
	})
}
