package codec

import (
	"errors"
	"runtime"
	"testing"
)

// decoders are all decoders of stored bytes. Each of their errors is an ErrCorrupt.
var decoders = []struct {
	name   string
	decode func(b []byte) error
}{
	{"block", func(b []byte) error { _, err := DecodeBlock(b); return err }},
	{"layer", func(b []byte) error { _, err := DecodeLayer(b); return err }},
	{"posting", func(b []byte) error { _, _, err := DecodePosting(b); return err }},
	{"posting codes", func(b []byte) error { _, err := AppendPostingCodes(nil, b); return err }},
	{"counters", func(b []byte) error { _, err := DecodeCounters(b); return err }},
	{"item", func(b []byte) error { _, err := DecodeItemRecord(b); return err }},
	{"lesson", func(b []byte) error { _, err := DecodeLesson(64, b); return err }},
	{"retraction", func(b []byte) error { _, err := DecodeRetraction(64, b); return err }},
	{"sparse features", func(b []byte) error {
		_, _, err := AppendDecodedSparse(nil, nil, 1<<20, b)
		return err
	}},
	{"row code", func(b []byte) error { _, err := DecodeRowCode(b); return err }},
	{"merged layers", func(b []byte) error { return merged(RowsKey(1, SetLive, 0, 0), b) }},
	{"merged postings", func(b []byte) error { return merged(SubstringKey(1, 1, 0, 0), b) }},
	{"merged blocks", func(b []byte) error { return merged(NumberKey(KindRowKeys, 1, 0), b) }},
}

// merged merges the two halves of b.
func merged(key, b []byte) error {
	m, err := NewMerger(key, b[:len(b)/2])
	if err == nil {
		m.Newer(b[len(b)/2:])
		_, err = m.Finish(false)
	}
	return err
}

// FuzzAllocation: whatever sizes the bytes claim, reading them allocates no more than a
// constant and 256 times their length. The constant is that of a block and of the
// containers of one bitmap. Numbers take up to 32 times the memory of the bitmap that
// spells them, and merging copies them.
func FuzzAllocation(f *testing.F) {
	l := NewLayer()
	l.Add(7)
	l.Delete(70)
	layer, _ := l.Append(nil, false)
	item, _ := sampleRecords[len(sampleRecords)-1].Append(nil)
	for kind, b := range [][]byte{
		NewBlockEdit(-1).Append(nil, false), layer, AppendPosting(nil, []uint32{1, 200, 70000},
			[]uint32{0, 1 << 31}),
		AppendPosting(nil, []uint32{5}, nil), Counters{NextRow: 5, Items: 3, NextSpace: 2}.Append(nil), item,
		Lesson{3, Taught{Codes: make([]byte, 8)}}.Append(nil),
		(&Retraction{Lesson: Lesson{3, Taught{Labels: []uint32{2, 9}}}}).Append(nil),
		AppendSparseFeatures(nil, []uint32{0, 7}, []float32{1, -2}),
	} {
		f.Add(byte(kind), b)
	}
	for kind := range decoders {
		for _, count := range [][]byte{{0xff, 0xff, 0xff, 0xff, 0x0f},
			{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
			{2, 0x3a, 0x30, 0, 0, 0xff, 0xff, 0, 0}} {
			for version := range byte(5) {
				f.Add(byte(kind), append([]byte{version}, count...))
				f.Add(byte(kind), append([]byte{version, 0}, count...))
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		d := decoders[int(kind)%len(decoders)]
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := d.decode(b)
		runtime.ReadMemStats(&after)
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", d.name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(4<<20+256*len(b)) {
			t.Errorf("%s: %d bytes allocated for %d bytes of input", d.name, n, len(b))
		}
	})
}
