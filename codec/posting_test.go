package codec

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"
)

// postingLists draws ascending lists: few of very many numbers, numbers around the
// borders of containers, or stretches dense enough for a bitmap.
func postingLists() *rapid.Generator[[]uint32] {
	return rapid.Custom(func(t *rapid.T) []uint32 {
		var list []uint32
		limit := rapid.SampledFrom([]uint32{1 << 7, 1 << 16, 1 << 24, math.MaxUint32}).Draw(t, "limit")
		list = append(list, rapid.SliceOfN(rapid.Uint32Max(limit), 0, 30).Draw(t, "numbers")...)
		border := rapid.SampledFrom([]uint32{0, 127, 65535, 65536, 1<<21 + 127, math.MaxUint32})
		list = append(list, rapid.SliceOfN(border, 0, 3).Draw(t, "borders")...)
		for range rapid.IntRange(0, 2).Draw(t, "stretches") {
			from := rapid.SampledFrom([]uint32{0, 60000, 65536, 1 << 24, math.MaxUint32 - 80000}).Draw(t,
				"from")
			count := rapid.SampledFrom([]uint32{100, 4096, 5000, 65536, 70000}).Draw(t, "count")
			step := rapid.SampledFrom([]uint32{1, 1, 2, 7, 9, 200}).Draw(t, "step")
			for i := uint64(0); i < uint64(count) && uint64(from)+i*uint64(step) <= math.MaxUint32; i++ {
				list = append(list, from+uint32(i)*step)
			}
		}
		slices.Sort(list)
		return slices.Compact(list)
	})
}

// withoutRuns encodes a list as a bitmap without run containers.
func withoutRuns(list []uint32) []byte {
	return appendBitmap(nil, countContainers(list), slices.Values(list))
}

func TestPostingsKeepWhatTheyWereGiven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		added, deleted := postingLists().Draw(t, "added"), postingLists().Draw(t, "deleted")
		deleted = slices.DeleteFunc(slices.Clone(deleted), func(x uint32) bool {
			_, found := slices.BinarySearch(added, x)
			return found
		})
		value := AppendPosting([]byte("before"), added, deleted)
		value, ok := bytes.CutPrefix(value, []byte("before"))
		if !ok {
			t.Fatal("what stood before is gone")
		}
		a, d, err := DecodePosting(value)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a, added) || !slices.Equal(d, deleted) {
			t.Fatalf("got +%v -%v, want +%v -%v", a, d, added, deleted)
		}
		codes, err := AppendPostingCodes([]uint32{9, 9}, value)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(codes, append([]uint32{9, 9}, added...)) {
			t.Fatalf("got codes %v, want 9, 9 and %v", codes, added)
		}
	})
}

func TestPostingTakesTheShorterForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := postingLists().Draw(t, "list")
		var deltas []byte
		for i, x := range list {
			if i > 0 {
				x -= list[i-1] + 1
			}
			deltas = binary.AppendUvarint(deltas, uint64(x))
		}
		bitmap := withoutRuns(list)
		if len(list) > 0 && bitmapSize(list) != len(bitmap) {
			t.Fatalf("bitmap of %d bytes, foretold %d", len(bitmap), bitmapSize(list))
		}
		want := 1 + min(len(deltas), len(bitmap))
		for _, edit := range [][2][]uint32{{list, nil}, {nil, list}} {
			if got := AppendPosting(nil, edit[0], edit[1]); len(got) != want {
				t.Fatalf("%d bytes; deltas have %d, a bitmap %d", len(got), len(deltas), len(bitmap))
			}
		}
		set := roaring.BitmapOf(list...)
		n, err := bitmapNumbers(set)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := appendPosting(nil, n, numbers{}), AppendPosting(nil, list, nil); !bytes.Equal(got,
			want) {
			t.Fatalf("a bitmap of %d numbers is written in %d bytes, a list in %d", len(list), len(got),
				len(want))
		}
	})
}

// The library reads our bitmaps, and writes the same bytes unless it uses run
// containers.
func TestPostingBitmapIsRoaring(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := postingLists().Draw(t, "list")
		b := withoutRuns(list)
		set := roaring.New()
		if err := decodeBitmap(set, b, math.MaxUint32); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(set.ToArray(), list) {
			t.Fatal("roaring reads other numbers")
		}
		set = roaring.BitmapOf(list...)
		if theirs, err := set.ToBytes(); err != nil || !set.HasRunCompression() && !bytes.Equal(theirs, b) {
			t.Fatalf("roaring writes %d bytes, not our %d: %v", len(theirs), len(b), err)
		}
	})
}

// The bytes of format 0.
func TestPostingBytes(t *testing.T) {
	for _, c := range []struct {
		added, deleted []uint32
		want           string
	}{
		{nil, nil, "00"},
		{[]uint32{0}, nil, "01" + "00"},
		{[]uint32{5, 6, 134, 70000}, nil, "01" + "05" + "00" + "7f" + "e9a104"},
		{[]uint32{1, 130}, nil, "01" + "01" + "8001"},
		{[]uint32{math.MaxUint32}, nil, "01" + "ffffffff0f"},
		{nil, []uint32{300}, "10" + "ac02"},
		{[]uint32{1, 2}, []uint32{0, 3}, "11" + "02" + "0100" + "0002"},
	} {
		if got := hex.EncodeToString(AppendPosting(nil, c.added, c.deleted)); got != c.want {
			t.Errorf("+%v -%v is %s, not %s", c.added, c.deleted, got, c.want)
		}
	}
	// Every second number of a container, and one of another.
	var list []uint32
	for x := uint32(1 << 17); x < 1<<17+1<<16; x += 2 {
		list = append(list, x)
	}
	list = append(list, 1<<18)
	want := "02" + "3a300000" + "02000000" + // cookie, containers
		"0200" + "ff7f" + "0400" + "0000" + // upper halves, counts less one
		"18000000" + "18200000" // where they start
	for range 8192 {
		want += "55"
	}
	want += "0000"
	if got := hex.EncodeToString(AppendPosting(nil, list, nil)); got != want {
		t.Errorf("bitmap is %.60s... of %d digits, not %.60s... of %d", got, len(got), want, len(want))
	}
	if got := hex.EncodeToString(AppendPosting(nil, list, []uint32{7})); got != "12"+"9a40"+want[2:]+"07" {
		t.Errorf("bitmap and deletion start with %.20s", got)
	}
}

func TestDecodePostingRefuses(t *testing.T) {
	full := roaring.New()
	full.AddRange(0, 1<<16)
	runs, err := full.ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	dense := withoutRuns(func() (list []uint32) {
		for x := range uint32(5000) {
			list = append(list, 3*x)
		}
		return list
	}())
	wrong := bytes.Clone(dense)
	wrong[len(wrong)-1] ^= 1
	empty, err := roaring.New().ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	with := func(tag byte, b []byte) string { return hex.EncodeToString(append([]byte{tag}, b...)) }
	for name, value := range map[string]string{
		"nothing":                    "",
		"forms 3":                    "0301",
		"forms f":                    "f1020101",
		"additions without bytes":    "01",
		"deletions without bytes":    "10",
		"bytes without form":         "0001",
		"length beyond the end":      "110501",
		"no deletions in both":       "11010a",
		"no additions in both":       "11000a",
		"length that does not end":   "11ff",
		"delta cut short":            "0181",
		"long delta cut short":       "0101010101010101010181",
		"delta of six bytes":         "01808080808001",
		"delta of nine bytes":        "01808080808080808001",
		"delta longer than it needs": "018000",
		"the same among many":        "0101010180000101010101",
		"number of 33 bits":          "018080808010",
		"sum of 33 bits":             "01ffffffff0f00",
		"sum of 33 bits among many":  "01ffffffff0f0000000000000000000000",
		"adds and deletes 3":         "11020300" + "0003" + "00",
		"run containers":             with(2, runs),
		"empty bitmap":               with(2, empty),
		"bitmap of three bytes":      "023a3000",
		"bitmap cut short":           with(2, dense[:len(dense)-1]),
		"bitmap and a byte":          with(2, append(bytes.Clone(dense), 0)),
		"bitmap with a wrong count":  with(2, wrong),
	} {
		b, err := hex.DecodeString(value)
		if err != nil {
			t.Fatal(err)
		}
		if a, d, err := DecodePosting(b); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: +%v -%v, %v", name, a, d, err)
		}
		dst := []uint32{7, 8}
		if got, err := AppendPostingCodes(dst, b); err != nil &&
			(!slices.Equal(got, dst) || !errors.Is(err, ErrCorrupt)) {
			t.Errorf("%s: %v is appended with %v", name, got[2:], err)
		}
		for _, final := range []bool{false, true} {
			if sum, err := addPostings([][]byte{b, {0}}, final); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s: merged into %x, %v", name, sum, err)
			}
		}
	}
}

func TestAppendPostingCodesDoesNotAllocate(t *testing.T) {
	value := AppendPosting(nil, []uint32{3, 70_000, 90_000_000, math.MaxUint32}, nil)
	dst := make([]uint32, 0, 4)
	key := make([]byte, 0, 16)
	if n := testing.AllocsPerRun(100, func() {
		key = AppendSubstringKey(key[:0], 1, 2, 3, 4)
		if got, err := AppendPostingCodes(dst, value); err != nil || len(got) != 4 {
			t.Fatal(got, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// randomNumbers returns count distinct numbers below limit, ascending.
func randomNumbers(rng *rand.Rand, count, limit int) []uint32 {
	seen := make(map[uint32]bool, count)
	for len(seen) < count {
		seen[uint32(rng.IntN(limit))] = true
	}
	list := make([]uint32, 0, count)
	for x := range seen {
		list = append(list, x)
	}
	slices.Sort(list)
	return list
}

func BenchmarkAppendPostingCodes(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ count, limit int }{
		{1, 1e6}, {15, 1e6}, {15, 1e8}, {1000, 1e6}, {100_000, 1e6}, {100_000, 4e5},
	} {
		b.Run(fmt.Sprintf("n=%d/of=%d", c.count, c.limit), func(b *testing.B) {
			// Many postings, so that no branch predictor learns one.
			values := make([][]byte, max(1, 64_000/c.count))
			size := 0
			for i := range values {
				values[i] = AppendPosting(nil, randomNumbers(rng, c.count, c.limit), nil)
				size += len(values[i])
			}
			dst := make([]uint32, 0, c.count)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				var err error
				if dst, err = AppendPostingCodes(dst[:0], values[i%len(values)]); err != nil ||
					len(dst) != c.count {
					b.Fatal(len(dst), err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.count), "ns/number")
			b.ReportMetric(float64(size)/float64(len(values)*c.count), "bytes/number")
		})
	}
}

// A million random numbers in 65,536 postings: 15 in each, as in a table of 16 bits.
func BenchmarkAppendPosting(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, limit := range []int{1e6, 1e8} {
		b.Run(fmt.Sprintf("of=%d", limit), func(b *testing.B) {
			lists := make([][]uint32, 1<<16)
			for x := range 1_000_000 {
				list := &lists[rng.IntN(len(lists))]
				*list = append(*list, uint32(x*(limit/1e6)+rng.IntN(limit/1e6)))
			}
			var buf []byte
			size := 0
			b.ResetTimer()
			for range b.N {
				size = 0
				for _, list := range lists {
					buf = AppendPosting(buf[:0], list, nil)
					size += len(buf)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/number")
			b.ReportMetric(float64(size)/1e6, "bytes/number")
		})
	}
}

func BenchmarkMergePostings(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 6))
	key := SubstringKey(1, 1, 0, 0)
	for _, c := range []struct {
		name      string
		base      int
		ascending bool
	}{
		{"base=0/ascending", 0, true}, {"base=0/random", 0, false},
		{"base=1000000/ascending", 1e6, true}, {"base=1000000/random", 1e6, false},
		{"base=30000000/random", 3e7, false}, // a bitmap
	} {
		b.Run(c.name, func(b *testing.B) {
			var values [][]byte
			if c.base > 0 {
				var list []uint32
				for x := 0; x < 1e8; x += 1 + rng.IntN(2e8/c.base-1) {
					list = append(list, uint32(x))
				}
				values = append(values, AppendPosting(nil, list, nil))
			}
			for i := range 1000 {
				x := uint32(1e8 + 50*i)
				if !c.ascending {
					x = uint32(rng.IntN(1e8))
				}
				values = append(values, AppendPosting(nil, []uint32{x}, nil))
			}
			b.ResetTimer()
			b.ReportAllocs()
			for range b.N {
				m, err := NewMerger(key, values[0])
				if err != nil {
					b.Fatal(err)
				}
				for _, v := range values[1:] {
					m.Newer(v)
				}
				if _, err := m.Finish(true); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
