package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/internal/simd"
	"pgregory.net/rapid"
)

// useSet makes k the active set until the test ends. Such tests must not run in
// parallel.
func useSet(t testing.TB, k simd.Set) {
	before := active
	active = k
	t.Cleanup(func() { active = before })
}

func TestKernelSetsEndInGeneric(t *testing.T) {
	if sets[len(sets)-1] != simd.Generic {
		t.Errorf("sets are %v", sets)
	}
	if KernelName() != sets[0].String() {
		t.Errorf("runs %s, could run %s", KernelName(), sets[0])
	}
	t.Logf("this machine runs %v", sets)
}

func TestNear(t *testing.T) {
	for _, c := range []struct {
		distance int
		position uint32
	}{{0, 0}, {0, math.MaxUint32}, {1, 0}, {4096, 7}, {4096, math.MaxUint32}} {
		n := NearOf(c.distance, c.position)
		if n.Distance() != c.distance || n.Position() != c.position {
			t.Errorf("NearOf(%d, %d) is %d, %d", c.distance, c.position, n.Distance(), n.Position())
		}
	}
	if NearOf(3, math.MaxUint32) >= NearOf(4, 0) || NearOf(3, 4) >= NearOf(3, 5) {
		t.Error("order is not that of (distance, position)")
	}
}

// A block is a query and codes: as bytes, which the oracle counts, and packed for the
// kernels.
type block struct {
	query  []byte
	stored [][]byte
	code   Code
	codes  []uint64
}

// countBits is the oracle: it shares nothing with the kernels.
func countBits(a, b []byte) int {
	n := 0
	for i := range a {
		n += bits.OnesCount8(a[i] ^ b[i])
	}
	return n
}

func words(b []byte) []uint64 {
	var w []uint64
	for len(b) > 0 {
		w = append(w, binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	return w
}

// drawBlock draws n codes of w words, many of them close to the query. The packed codes
// start at any word of an array, and end where their slice ends.
func drawBlock(t *rapid.T, w, n int) block {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	skip := rapid.IntRange(0, 7).Draw(t, "skip")
	b := block{query: randomBytes(rng, 8*w), codes: make([]uint64, skip, skip+n*w)}
	b.code = words(b.query)
	for range n {
		s := slices.Clone(b.query)
		switch rng.IntN(4) {
		case 0:
			s = randomBytes(rng, 8*w)
		case 1: // the query itself or its complement
			if flip := byte(-rng.IntN(2)); flip != 0 {
				for i := range s {
					s[i] ^= flip
				}
			}
		default:
			for range rng.IntN(20) {
				s[rng.IntN(len(s))] ^= 1 << rng.IntN(8)
			}
		}
		b.stored = append(b.stored, s)
		b.codes = append(b.codes, words(s)...)
	}
	b.codes = slices.Clip(b.codes)[skip:]
	return b
}

func drawWords(t *rapid.T) int {
	return rapid.OneOf(rapid.IntRange(1, 4), rapid.IntRange(1, 64)).Draw(t, "words")
}

// drawCount mostly draws counts that end in every tail of the loops, and sometimes more
// than the 255 codes that a byte counts.
func drawCount(t *rapid.T, w int) int {
	return rapid.OneOf(rapid.IntRange(0, 9), rapid.IntRange(0, 70), rapid.IntRange(0, 1200/w)).Draw(t,
		"codes")
}

func drawRadius(t *rapid.T, w int) int {
	return rapid.OneOf(
		rapid.IntRange(0, 20), rapid.IntRange(-1, 64*w+1),
		rapid.SampledFrom([]int{math.MinInt, -1, 0, 64*w - 1, 64 * w, 64*w + 1, math.MaxInt}),
	).Draw(t, "r")
}

// guarded returns n Nears inside a larger array, and a check that the memory around
// them is unchanged.
func guarded(n int) (dst []Near, check func() error) {
	const margin, mark = 64, Near(0x5a5a5a5a5a5a5a5a)
	all := make([]Near, n+2*margin)
	for i := range all {
		all[i] = mark
	}
	return all[margin : margin+n], func() error {
		for i, x := range all {
			if (i < margin || i >= margin+n) && x != mark {
				return fmt.Errorf("element %d of %d was written to", i-margin, n)
			}
		}
		return nil
	}
}

// near is the oracle for one position.
func (b block) near(position int, r int, base uint32) []Near {
	if d := countBits(b.query, b.stored[position]); d <= r {
		return []Near{Near(uint64(d)*(1<<32) + uint64(base) + uint64(position))}
	}
	return nil
}

// forEachSet runs a property with every set that this machine can run.
func forEachSet(t *testing.T, property func(*rapid.T)) {
	for _, k := range sets {
		t.Run(k.String(), func(t *testing.T) {
			useSet(t, k)
			rapid.Check(t, property)
		})
	}
}

func compare(t *rapid.T, what string, got, want []Near, guard func() error) {
	if !slices.Equal(got, want) {
		t.Fatalf("%s found %d, want %d:\n%x\n%x", what, len(got), len(want), got, want)
	}
	if err := guard(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestDistancesAgree(t *testing.T) {
	forEachSet(t, func(t *rapid.T) {
		w := drawWords(t)
		b := drawBlock(t, w, drawCount(t, w))
		all := make([]uint16, len(b.stored)+64)
		for i := range all {
			all[i] = 0x5a5a
		}
		dst := all[32:][:len(b.stored)]
		Distances(dst, b.code, b.codes)
		for i, d := range all {
			want := 0x5a5a
			if i -= 32; i >= 0 && i < len(dst) {
				want = countBits(b.query, b.stored[i])
			}
			if int(d) != want {
				t.Fatalf("distance %d of %d is %d, want %d", i, len(dst), d, want)
			}
			if i >= 0 && i < len(dst) && Distance(b.code, b.codes[i*len(b.code):][:len(b.code)]) != want {
				t.Fatalf("Distance of %d is not %d", i, want)
			}
		}
	})
}

func TestWithinAgrees(t *testing.T) {
	forEachSet(t, func(t *rapid.T) {
		w := drawWords(t)
		b := drawBlock(t, w, drawCount(t, w))
		r := drawRadius(t, w)
		base := rapid.SampledFrom(
			[]uint32{0, 1, 1 << 31, math.MaxUint32 - uint32(max(1, len(b.stored))) + 1}).Draw(t, "base")
		var want []Near
		for i := range b.stored {
			want = append(want, b.near(i, r, base)...)
		}
		dst, guard := guarded(len(b.stored) + rapid.IntRange(0, 3).Draw(t, "room"))
		n := Within(dst, b.code, b.codes, r, base)
		compare(t, "Within", dst[:n], want, guard)
	})
}

func TestWithinAtAgrees(t *testing.T) {
	forEachSet(t, func(t *rapid.T) {
		w := drawWords(t)
		b := drawBlock(t, w, drawCount(t, w)+1)
		r := drawRadius(t, w)
		at := rapid.SliceOfN(rapid.Uint32Range(0, uint32(len(b.stored)-1)), 0, 70).Draw(t, "at")
		var want []Near
		for _, p := range at {
			want = append(want, b.near(int(p), r, 0)...)
		}
		dst, guard := guarded(len(at))
		n := WithinAt(dst, b.code, b.codes, at, r)
		compare(t, "WithinAt", dst[:n], want, guard)
	})
}

// drawRanges returns ranges of positions up to n; the last one covers all. sum is the
// sum of their lengths.
func drawRanges(t *rapid.T, n int) (from, to []uint32, sum int) {
	longest := rapid.SampledFrom([]int{0, 3, 20, n}).Draw(t, "longest")
	for range rapid.IntRange(0, 40).Draw(t, "ranges") {
		start := rapid.IntRange(0, n).Draw(t, "from")
		end := rapid.IntRange(start, min(n, start+longest)).Draw(t, "to")
		from, to, sum = append(from, uint32(start)), append(to, uint32(end)), sum+end-start
	}
	return append(from, 0), append(to, uint32(n)), sum + n
}

func TestWithinRangesAgrees(t *testing.T) {
	forEachSet(t, func(t *rapid.T) {
		w := drawWords(t)
		b := drawBlock(t, w, drawCount(t, w))
		r := drawRadius(t, w)
		from, to, sum := drawRanges(t, len(b.stored))
		var want []Near
		for i := range from {
			for p := from[i]; p < to[i]; p++ {
				want = append(want, b.near(int(p), r, 0)...)
			}
		}
		dst, guard := guarded(sum + 8)
		n := WithinRanges(dst, b.code, b.codes, from, to, r)
		compare(t, "WithinRanges", dst[:n], want, guard)
	})
}

func TestWithinEachAgrees(t *testing.T) {
	forEachSet(t, func(t *rapid.T) {
		w := drawWords(t)
		// Up to several of the pieces of WithinEach.
		b := drawBlock(t, w, rapid.OneOf(rapid.IntRange(0, 70), rapid.IntRange(0, 1500/w)).Draw(t, "codes"))
		const base = 1000
		var (
			dst          [][]Near
			guards       []func() error
			queries      []Code
			r            []int
			queriesBytes [][]byte
		)
		for j := range rapid.IntRange(0, 10).Draw(t, "queries") {
			bytes := b.query
			if j > 0 && len(b.stored) > 0 {
				bytes = b.stored[rapid.IntRange(0, len(b.stored)-1).Draw(t, "query")]
			}
			d, guard := guarded(len(b.stored))
			dst, guards = append(dst, d), append(guards, guard)
			queries, queriesBytes = append(queries, words(bytes)), append(queriesBytes, bytes)
			r = append(r, drawRadius(t, w))
		}
		n := make([]int, len(queries))
		for j := range n {
			n[j] = -5
		}
		WithinEach(dst, n, queries, b.codes, r, base)
		for j := range queries {
			one := b
			one.query = queriesBytes[j]
			var want []Near
			for i := range b.stored {
				want = append(want, one.near(i, r[j], base)...)
			}
			compare(t, fmt.Sprintf("query %d of WithinEach", j), dst[j][:n[j]], want, guards[j])
		}
	})
}

// Wrong lengths, positions and ranges panic, and memory beyond the slices is unchanged.
func TestWithinPanicsOnWrongArguments(t *testing.T) {
	for _, k := range sets {
		t.Run(k.String(), func(t *testing.T) {
			useSet(t, k)
			for _, w := range []int{1, 2, 3, 4, 5, 8, 16, 64} {
				query, codes := make(Code, w), make([]uint64, 100*w)
				dst, guard := guarded(60)
				u := func(x ...uint32) []uint32 { return x }
				many := make([]uint32, 60)
				late := slices.Clone(many)
				late[59] = 100
				for name, f := range map[string]func(){
					"short dst": func() { Within(dst, query, codes, 64*w, 0) },
					"no query":  func() { Within(dst, nil, codes, 64*w, 0) },
					"long query": func() {
						Within(dst, make(Code, 65), make([]uint64, 65), 64*w,
							0)
					},
					"base overflows":      func() { Within(dst, query, codes[:3*w], 64*w, 1<<32-2) },
					"at: short dst":       func() { WithinAt(dst[:59], query, codes, many, 64*w) },
					"at: beyond":          func() { WithinAt(dst, query, codes, u(0, 100, 1), 64*w) },
					"at: last beyond":     func() { WithinAt(dst, query, codes, late, 64*w) },
					"at: far beyond":      func() { WithinAt(dst, query, codes, u(1<<32-1), 64*w) },
					"at: beyond, nothing": func() { WithinAt(dst, query, codes, u(0, 100), -1) },
					"at: no codes":        func() { WithinAt(dst, query, nil, u(0), 0) },
					"ranges: short dst":   func() { WithinRanges(dst, query, codes, u(0), u(53), 64*w) },
					"ranges: shorter dst": func() {
						WithinRanges(dst[:7], query, codes, u(0), u(0),
							64*w)
					},
					"ranges: no dst": func() {
						WithinRanges(nil, query, codes, u(0, 5), u(1, 6),
							64*w)
					},
					"ranges: short together": func() {
						WithinRanges(dst, query, codes, u(0, 10, 20), u(10, 20,
							53), -1)
					},
					"ranges: reversed": func() {
						WithinRanges(dst, query, codes, u(0, 5), u(1, 4),
							64*w)
					},
					"ranges: beyond": func() {
						WithinRanges(dst, query, codes, u(0, 98), u(1, 101),
							64*w)
					},
					"ranges: far beyond": func() {
						WithinRanges(dst, query, codes, u(0, 1<<32-2), u(1,
							1<<32-1), 64*w)
					},
					"ranges: empty beyond": func() {
						WithinRanges(dst, query, codes, u(101), u(101),
							64*w)
					},
					"ranges: no ends": func() { WithinRanges(dst, query, codes, u(0, 1), u(1), 64*w) },
					"each: short dst": func() {
						WithinEach([][]Near{dst}, []int{0}, []Code{query}, codes, []int{0}, 0)
					},
					"each: no counts": func() {
						WithinEach([][]Near{dst}, nil, []Code{query}, codes[:w], []int{0}, 0)
					},
					"each: other query": func() {
						WithinEach([][]Near{dst, dst}, []int{0, 0}, []Code{query, make(Code, w+1)}, codes[:w],
							[]int{0, 0}, 0)
					},
					"each: no radii": func() {
						WithinEach([][]Near{dst}, []int{0}, []Code{query}, codes[:w], nil, 0)
					},
					"distances: short dst": func() { Distances(make([]uint16, 99), query, codes) },
				} {
					if !panics(f) {
						t.Errorf("%d words, %s: no panic", w, name)
					}
					if err := guard(); err != nil {
						t.Fatalf("%d words, %s: %v", w, name, err)
					}
				}
			}
		})
	}
}

func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}

func TestWithinAllocatesNothing(t *testing.T) {
	query, codes := Code{1, 2}, make([]uint64, 400)
	dst, at, n := make([]Near, 208), []uint32{5, 6, 7}, make([]int, 1)
	each, queries, r := [][]Near{dst}, []Code{query}, []int{128}
	if a := testing.AllocsPerRun(10, func() {
		Within(dst, Code{3, 4}, codes, 128, 0)
		WithinAt(dst, query, codes, at, 128)
		WithinRanges(dst, query, codes, at, at, 128)
		WithinEach(each, n, queries, codes, r, 0)
	}); a != 0 {
		t.Errorf("%g allocations", a)
	}
}
