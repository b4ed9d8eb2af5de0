package codec

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var sampleRecords = []*ItemRecord{
	{},
	{Labels: []uint32{0}},
	{Labels: []uint32{0, 1, 7, math.MaxUint32}, Payload: []byte("payload")},
	{Fields: []Field{{0, ""}, {1, "déjà vu"}, {5, int64(math.MinInt64)}, {6, int64(7)}, {9, -0.5}, {10, true},
		{11, false}, {12, Time(-1)}, {13, LeastTime}, {14, MostTime}}},
}

func TestItemRecordRoundTrip(t *testing.T) {
	for _, r := range sampleRecords {
		b, err := r.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeItemRecord(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(r, got); d != "" {
			t.Error(d)
		}
		for cut := range b {
			if cut > 0 && len(r.Payload) > 0 && cut >= len(b)-len(r.Payload) {
				break // a payload may have any length
			}
			if got, err := DecodeItemRecord(b[:cut]); err == nil {
				t.Errorf("%d of %d bytes decode to %+v", cut, len(b), got)
			} else if !errors.Is(err, ErrCorrupt) {
				t.Errorf("%d of %d bytes: %v", cut, len(b), err)
			}
		}
	}
	for _, at := range []Time{LeastTime - 1, MostTime + 1, math.MinInt64, math.MaxInt64} {
		b, err := (&ItemRecord{Fields: []Field{{0, at}}}).Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := DecodeItemRecord(b); !errors.Is(err, ErrCorrupt) {
			t.Errorf("a time of %d is read: %v, %v", at, r, err)
		}
	}
	if _, err := (&ItemRecord{Fields: []Field{{0, 1.5i}}}).Append(nil); err == nil {
		t.Error("a complex field is accepted")
	}
}

func TestFeaturesRoundTrip(t *testing.T) {
	for _, x := range [][]float32{{}, {1}, {-0.5, math.MaxFloat32, math.SmallestNonzeroFloat32, 0}} {
		got := make([]float32, len(x))
		if err := DecodeFeatures(got, AppendFeatures(nil, x)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(x, got); d != "" {
			t.Error(d)
		}
		if err := DecodeFeatures(make([]float32, len(x)+1), AppendFeatures(nil, x)); !errors.Is(err,
			ErrCorrupt) {
			t.Errorf("wrong dimension: %v", err)
		}
	}
	nan := AppendFeatures(nil, []float32{0, float32(math.NaN())})
	if err := DecodeFeatures(make([]float32, 2), nan); !errors.Is(err, ErrCorrupt) {
		t.Errorf("NaN: %v", err)
	}
}

func TestCountersRoundTrip(t *testing.T) {
	for _, c := range []Counters{
		{},
		{4, 2, 3, 6, 5, 0, []SpaceCounters{{5, false, false, 2, 0, 3, 1, 1, CodeCounters{6, 2, 6, 1}}}},
		{math.MaxUint32, math.MaxUint64, 0, math.MaxUint32, 1, 7, []SpaceCounters{
			{1, true, false, math.MaxUint32, 7, 7, math.MaxUint64, math.MaxUint32,
				CodeCounters{math.MaxUint32, 7, 9, 5}},
			{2, true, true, 1, 0, 0, 0, 0, CodeCounters{}},
		}},
	} {
		b := c.Append(nil)
		if got, err := DecodeCounters(b); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%+v became %+v, %v", c, got, err)
		}
		for cut := range b {
			if _, err := DecodeCounters(b[:cut]); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%d of %d bytes: %v", cut, len(b), err)
			}
		}
	}
	space := func(s SpaceCounters) Counters {
		return Counters{NextRow: 9, NextSpace: 9, Spaces: []SpaceCounters{s}}
	}
	for name, c := range map[string]Counters{
		"spaces that descend":    {NextSpace: 9, Spaces: []SpaceCounters{{ID: 2}, {ID: 1}}},
		"a space without number": space(SpaceCounters{}),
		"a space to come":        space(SpaceCounters{ID: 9}),
		"more postings than codes": space(SpaceCounters{ID: 1, CodeCounters: CodeCounters{NextCode: 3,
			Posted: 4}}),
		"more codes than ever": space(SpaceCounters{ID: 1, CodeCounters: CodeCounters{NextCode: 3,
			Codes: 4}}),
		"more items than rows": space(SpaceCounters{ID: 1, CodeCounters: CodeCounters{NextCode: 3,
			Coded: 10}}),
		"more built than rows":     space(SpaceCounters{ID: 1, Built: 10}),
		"statistics of the future": space(SpaceCounters{ID: 1, Revision: 2, Checkpoint: 3}),
	} {
		if got, err := DecodeCounters(c.Append(nil)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestSparseFeaturesRoundTrip(t *testing.T) {
	for _, c := range []struct {
		index []uint32
		value []float32
		bytes int
	}{
		{nil, nil, 2},
		{[]uint32{0}, []float32{-1}, 7},
		{[]uint32{0, 1, 127, 300, 1 << 20}, []float32{1, -0.5, math.MaxFloat32, math.SmallestNonzeroFloat32,
			7}, 2 + 1 + 1 + 1 + 2 + 3 + 20},
		{[]uint32{math.MaxUint32 - 1, math.MaxUint32}, []float32{1, 2}, 2 + 5 + 1 + 8},
	} {
		dim := 1
		if n := len(c.index); n > 0 {
			dim = int(c.index[n-1]) + 1
		}
		b := AppendSparseFeatures([]byte{9}, c.index, c.value)[1:]
		if len(b) != c.bytes {
			t.Errorf("%d values take %d bytes, not %d", len(c.index), len(b), c.bytes)
		}
		index, value, err := AppendDecodedSparse(nil, nil, dim, b)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(index, c.index) || !slices.Equal(value, c.value) {
			t.Errorf("%v %v, want %v %v", index, value, c.index, c.value)
		}
		for cut := range b {
			if _, _, err := AppendDecodedSparse(nil, nil, dim, b[:cut]); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%d of %d bytes: %v", cut, len(b), err)
			}
		}
		for _, bad := range [][]byte{append(slices.Clone(b), 0), AppendFeatures(nil, c.value)} {
			if _, _, err := AppendDecodedSparse(nil, nil, dim, bad); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%x: %v", bad, err)
			}
		}
		if _, _, err := AppendDecodedSparse(nil, nil, dim-1, b); len(c.index) > 0 &&
			!errors.Is(err, ErrCorrupt) {
			t.Errorf("an index beyond the dimensions: %v", err)
		}
		if err := DecodeFeatures(make([]float32, 1), b); !errors.Is(err, ErrCorrupt) {
			t.Errorf("as a dense vector: %v", err)
		}
	}
	for name, b := range map[string][]byte{
		"NaN":            AppendSparseFeatures(nil, []uint32{1}, []float32{float32(math.NaN())}),
		"zero":           AppendSparseFeatures(nil, []uint32{1}, []float32{0}),
		"an index twice": AppendSparseFeatures(nil, []uint32{3, 3}, []float32{1, 1}),
		"descending":     AppendSparseFeatures(nil, []uint32{3, 2}, []float32{1, 1}),
		"many":           {2, 255, 255, 255, 255, 15},
	} {
		if _, _, err := AppendDecodedSparse(nil, nil, 10, b); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
