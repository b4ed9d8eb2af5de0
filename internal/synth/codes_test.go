package synth

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"runtime"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
)

func generate(t testing.TB, set CodeSet, q, n int, seed uint64) codec.Codes {
	t.Helper()
	codes, err := Codes(set, q, n, seed)
	if err != nil {
		t.Fatal(err)
	}
	return codes
}

func queries(t *testing.T, set CodeSet, q, n, count int, seed uint64) (members, fresh codec.Codes) {
	t.Helper()
	members, fresh, err := CodeQueries(set, q, n, count, seed)
	if err != nil {
		t.Fatal(err)
	}
	return members, fresh
}

func words(c codec.Codes) []uint64 { return c.Slice(0, c.Len()) }

func hash(c codec.Codes) uint64 {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, words(c)) // writing to a hash never fails
	return h.Sum64()
}

// Figures of benchmarks can be compared only if the codes are the same. A change here
// changes every benchmark.
func TestCodesArePinned(t *testing.T) {
	for _, c := range []struct {
		set                   CodeSet
		q                     int
		items, members, fresh uint64
	}{
		{Uniform, 64, 0x74bd9b792924d8de, 0x10e1d2057a0dcb49, 0x44a844cb8f057ce},
		{Uniform, 128, 0x90f2c02de35d68d2, 0x86f0dcff2ca704dc, 0xb9c8101b12a3cdee},
		{Clustered, 64, 0xb435676edbb07169, 0x1621951cfdb288c4, 0xb4de2cd3075f6f71},
		{Clustered, 128, 0x78aa722e0bc5b864, 0xb2618454a4c2f825, 0xb9a86165a0ae1b20},
		{Learned, 64, 0xa366d6609a09abd3, 0xe56a00505c6a9775, 0x5d858716624a3549},
		{Learned, 128, 0x4aeaa0ab4267ea86, 0x326b84fafc096289, 0xcb4f940d420ba33d},
		{Projected, 64, 0x80cc0bdfe570cd6f, 0x375ac6c99460cc5, 0x224fcd7143b57141},
		{Projected, 128, 0x9f7be85f8de879a3, 0xfb4eddf3a7565e11, 0xa93d919836d36f57},
		{Projected, 72, 0x5c5225145865bc49, 0x9bd3faa36c71100, 0x3b73cd2818c1323c},
	} {
		members, fresh := queries(t, c.set, c.q, 5000, 300, 1)
		items := generate(t, c.set, c.q, 5000, 1)
		if hash(items) != c.items || hash(members) != c.members || hash(fresh) != c.fresh {
			t.Errorf("{%s, %d, %#x, %#x, %#x},", c.set.Name(), c.q, hash(items), hash(members), hash(fresh))
		}
	}
}

// The same arguments give the same codes, however many cores there are. Another seed
// gives other codes. Any length of code is possible.
func TestCodes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector, and is one goroutine")
	}
	for _, set := range CodeSets() {
		for _, q := range []int{8, 16, 24, 64, 72, 128, 192, 256, 4096} {
			t.Run(fmt.Sprint(set, q), func(t *testing.T) {
				n := 3000
				codes := generate(t, set, q, n, 1)
				members, fresh := queries(t, set, q, n, 100, 1)
				if codes.Len() != n || codes.Bits() != q || members.Len() != 100 || members.Bits() != q ||
					fresh.Len() != 100 || fresh.Bits() != q {
					t.Fatalf("%d and %d, %d codes of %d and %d, %d bits",
						codes.Len(), members.Len(), fresh.Len(), codes.Bits(), members.Bits(), fresh.Bits())
				}
				for _, c := range []codec.Codes{codes, members, fresh} {
					for i := range c.Len() {
						if r := q % 64; r > 0 && c.At(i)[len(c.At(i))-1]>>r != 0 {
							t.Fatalf("code %d has bits beyond %d", i, q)
						}
					}
				}
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
				if !slices.Equal(words(codes), words(generate(t, set, q, n, 1))) {
					t.Error("one core makes other codes than several")
				}
				if slices.Equal(words(codes), words(generate(t, set, q, n, 2))) {
					t.Error("another seed makes the same codes")
				}
				more := generate(t, set, q, 2*n, 1)
				if begins := slices.Equal(words(codes), more.Slice(0, n)); begins != (set != Clustered) {
					t.Errorf("a smaller set is the beginning of a larger one: %t", begins)
				}
			})
		}
	}
}

func TestNoCodes(t *testing.T) {
	for _, set := range CodeSets() {
		if codes := generate(t, set, 64, 0, 1); codes.Len() != 0 || codes.Bits() != 64 {
			t.Errorf("%s: %d codes of %d bits", set, codes.Len(), codes.Bits())
		}
		if members, fresh := queries(t, set, 64, 1, 0, 1); members.Len() != 0 || fresh.Len() != 0 {
			t.Errorf("%s: %d and %d queries", set, members.Len(), fresh.Len())
		}
	}
}

func TestRefusedCodes(t *testing.T) {
	for _, c := range []struct {
		set         CodeSet
		q, n, count int
	}{
		{'X', 64, 10, 1},
		{Uniform, 0, 10, 1},
		{Uniform, 12, 10, 1},
		{Uniform, 4104, 10, 1},
		{Uniform, 64, -1, 1},
		{Uniform, 64, 1 << 32, 1},
		{Uniform, 64, 0, 1},
		{Uniform, 64, 10, -1},
	} {
		if _, _, err := CodeQueries(c.set, c.q, c.n, c.count, 1); err == nil {
			t.Errorf("%v is accepted", c)
		}
	}
	if _, err := Codes('X', 64, 1, 1); err == nil ||
		err.Error() != `unknown set "X": there are U, C, L and S` {
		t.Error(err)
	}
}

func distinct(codes codec.Codes) map[string]int {
	m := map[string]int{}
	for i := range codes.Len() {
		m[string(codes.At(i).AppendBytes(nil, codes.Bits()))]++
	}
	return m
}

// A member is within the few flipped bits of an item. A fresh query of a set without
// clusters has no item so near.
func TestCodeQueries(t *testing.T) {
	const q, n, count = 128, 20_000, 200
	for _, set := range CodeSets() {
		codes := generate(t, set, q, n, 9)
		members, fresh := queries(t, set, q, n, count, 9)
		nearest := func(queries codec.Codes) float64 {
			sum := 0
			for i := range count {
				least := q
				for k := range n {
					least = min(least, codec.Distance(queries.At(i), codes.At(k)))
				}
				sum += least
			}
			return float64(sum) / count
		}
		m, f := nearest(members), nearest(fresh)
		if m > .03*q+.5 || m < 1 {
			t.Errorf("%s: members are %.2f bits from the nearest item", set, m)
		}
		least, most := map[CodeSet]float64{Uniform: 30, Projected: 15, Clustered: 2}[set], q/3.
		switch set {
		case Learned:
			most = 2
		case Clustered:
			most = 2 * .05 * q
		}
		if f < least || f > most {
			t.Errorf("%s: fresh queries are %.2f bits from the nearest item, want %g to %g", set, f, least,
				most)
		}
		if set == Uniform {
			all := distinct(codes)
			for i := range count {
				if all[string(fresh.At(i).AppendBytes(nil, q))] > 0 {
					t.Errorf("fresh query %d is an item", i)
				}
			}
		}
	}
}

func BenchmarkCodes(b *testing.B) {
	const n = 1_000_000
	for _, set := range CodeSets() {
		for _, q := range []int{64, 128} {
			b.Run(fmt.Sprintf("%s/%d", set.Name(), q), func(b *testing.B) {
				for b.Loop() {
					generate(b, set, q, n, 1)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/code")
			})
		}
	}
}
