package mih

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// drawProjection makes a query of q numbers. They are Gaussian, or take few values so
// that many codes share a score, or have zeros of either sign, or one that outweighs
// the rest, or are tiny or huge.
func drawProjection(rng *rand.Rand, q int) []float64 {
	z := make([]float64, q)
	kind, scale := rng.IntN(5), math.Pow(10, float64(rng.IntN(5)*150-300))
	for b := range z {
		switch kind {
		case 0, 1:
			z[b] = rng.NormFloat64()
		case 2:
			z[b] = float64(rng.IntN(5) - 2)
		case 3:
			z[b] = float64(rng.IntN(2)*2 - 1)
		default:
			if z[b] = math.Copysign(0, rng.NormFloat64()); rng.IntN(4) == 0 {
				z[b] = rng.NormFloat64()
			}
		}
		z[b] *= scale
	}
	if rng.IntN(4) == 0 {
		z[rng.IntN(q)] *= 1e6
	}
	return z
}

// scoreOf is z . h by definition, h being bytes.
func scoreOf(z []float64, h []byte) float64 {
	sum := 0.0
	for b, x := range z {
		if h[b/8]>>(b%8)&1 == 0 {
			x = -x
		}
		sum += x
	}
	return sum
}

func lengthOf(z []float64) float64 {
	sum := 0.0
	for _, x := range z {
		sum += math.Abs(x)
	}
	return sum
}

// Scores agree with the definition, and the coarse bound is a bound.
func TestScores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := 8 * rapid.IntRange(1, 40).Draw(t, "bytes")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		z := drawProjection(rng, q)
		s := NewScorer(z)
		var coarse coarseLacks
		coarse.fill(s)
		if want := s.Score(s.Code()); want != s.score(0) || math.Abs(want-lengthOf(z)) > 1e-12*lengthOf(z) {
			t.Fatalf("the best score is %g, want %g", want, lengthOf(z))
		}
		for range 20 {
			h := make([]byte, q/8)
			for i := range h {
				h[i] = byte(rng.Uint32())
			}
			code := toCode(h)
			if got, want := s.Score(code), scoreOf(z, h); math.Abs(got-want) > 1e-12*lengthOf(z) {
				t.Fatalf("score %g, want %g", got, want)
			}
			lack := s.lack(code)
			if coarse.above(s, code, lack) || coarse.above(s, code, math.MaxInt64) {
				t.Fatalf("a code that lacks %d is said to lack more", lack)
			}
			if further := lack - s.total/256 - 1; q <= 128 && further > 0 && !coarse.above(s, code, further) {
				t.Fatalf("nothing is said of a code that lacks %d against %d of %d", lack, further, s.total)
			}
		}
	})
	zero := NewScorer(make([]float64, 16))
	if s := zero.Score(codec.Code{0xff}); s != 0 || zero.Code()[0] != 0xffff {
		t.Errorf("scores of nothing: %g, %x", s, zero.Code())
	}
}

// The weights do not depend on the scale of the query, within the range of float64.
func TestScorerOfAnySize(t *testing.T) {
	rng := seed.Rand(t, 7, 8)
	z := make([]float64, 64)
	for b := range z {
		z[b] = float64(rng.IntN(1<<20) - 1<<19)
	}
	want := NewScorer(z)
	for _, e := range []int{-1074, -1000, -30, 31, 900, 1004} {
		scaled := make([]float64, len(z))
		for b, v := range z {
			scaled[b] = math.Ldexp(v, e)
		}
		got := NewScorer(scaled)
		if !slices.Equal(got.weights, want.weights) || got.total != want.total ||
			!slices.Equal(got.code, want.code) {
			t.Errorf("times 2^%d: other weights", e)
		}
		h := codec.Code{rng.Uint64()}
		if g, w := got.Score(h), math.Ldexp(want.Score(h), e); g != w {
			t.Errorf("times 2^%d: score %g, want %g", e, g, w)
		}
	}
}

// bestOf is the answer by definition: all codes that pass the filter and score at least
// as well as the k-th row.
func (o *oracle) bestOf(z []float64, k int, by *Scorer, filter *roaring.Bitmap) []Scored {
	_, rows := o.runs(make([]byte, o.q/8), filter)
	var all []Scored
	weights := map[string]int{}
	for c, r := range rows {
		// the scorer rounds the same way for all codes
		all = append(all, Scored{Distance: o.distance([]byte(c), by.code.AppendBytes(nil, o.q)),
			Score: by.Score(toCode([]byte(c)))})
		weights[fmt.Sprint(all[len(all)-1])] += len(r)
	}
	slices.SortFunc(all, func(a, b Scored) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Distance, b.Distance))
	})
	sum := 0
	for i, x := range all {
		if i > 0 && sum >= k && x.Score < all[i-1].Score {
			return all[:i]
		}
		if i == 0 || x != all[i-1] {
			sum += weights[fmt.Sprint(x)]
		}
	}
	return all
}

// inWholes returns a scorer of whole numbers that are not scaled up. Many sums of
// weights then equal the bounds of a search, or are next to them.
func inWholes(z []float64) *Scorer {
	s := NewScorer(z)
	s.total, s.exponent = 0, 0
	for b, x := range z {
		s.weights[b] = int64(math.Abs(x))
		s.total += s.weights[b]
	}
	return s
}

// checkBest compares all plans with the definition.
func (o *oracle) checkBest(t rapid.TB, table *Table, z []float64, by *Scorer, filter *roaring.Bitmap, k int) {
	t.Helper()
	want := o.bestOf(z, k, by, filter)
	var first []Scored
	for _, plan := range []Plan{PlanAuto, PlanMemory, PlanScan, PlanFilter} {
		if plan == PlanFilter && filter == nil {
			continue
		}
		var e Explain
		got, err := table.Best(ctx, &Query{Filter: filter, Plan: plan}, by, k, []Scored{{Number: 7}}, &e)
		if err != nil || len(got) == 0 || got[0].Number != 7 {
			t.Fatalf("plan %v: %v, %v", plan, got, err)
		}
		if got = got[1:]; e.Found != len(got) || !slices.IsSortedFunc(got, Scored.Compare) {
			t.Fatalf("plan %v: %d found, not in order: %v", plan, e.Found, got)
		}
		seen := map[uint32]bool{}
		for _, x := range got {
			h := table.Code(x.Number).AppendBytes(nil, o.q)
			if d := scoreOf(z, h) - x.Score; seen[x.Number] || math.Abs(d) > 1e-12*lengthOf(z) {
				t.Fatalf("plan %v: code %d, off by %g", plan, x.Number, d)
			}
			seen[x.Number] = true
		}
		if first == nil {
			first = slices.Clone(got)
			for i := range got {
				got[i].Number = 0
			}
			slices.SortFunc(got, func(a, b Scored) int {
				return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Distance, b.Distance))
			})
			if !slices.Equal(got, want) {
				t.Fatalf("plan %v, k = %d: %d codes, want %d", plan, k, len(got), len(want))
			}
		} else if !slices.Equal(got, first) {
			t.Fatalf("plan %v, k = %d: %d codes, another plan %d", plan, k, len(got), len(first))
		}
	}
}

// Every plan finds the best scores by definition, in segments of any split and
// order of bits, in the tail, among codes that are gone, with and without filters.
func TestBestAgreesWithTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := rapid.SampledFrom([]int{8, 16, 24, 40, 64, 72, 128, 192, 256}).Draw(t, "bits")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		w, o := NewWriter(q), &oracle{q, map[uint32][]byte{}}
		codes := sample(rng, q, rapid.IntRange(1, 600).Draw(t, "codes"), 1+rng.IntN(12))
		row := uint32(0)
		for range rapid.IntRange(1, 3).Draw(t, "rounds") {
			for range rng.IntN(500) {
				add(t, w, o, row, codes[rng.IntN(len(codes))])
				row++
			}
			for range rng.IntN(120) {
				drop(w, o, rng.Uint32N(row+1))
			}
			if rapid.IntRange(0, 3).Draw(t, "build") > 0 {
				least := (q + 8) / 9
				install(t, w, rapid.IntRange(least, max(least, min(q, 40))).Draw(t, "m"),
					rapid.IntRange(0, len(w.t.segments)).Draw(t, "keep"))
			}
		}
		table := w.Publish()
		for range 4 {
			z := drawProjection(rng, q)
			if rng.IntN(2) == 0 { // near a code
				c := codes[rng.IntN(len(codes))]
				for b := range z {
					if z[b] = math.Abs(z[b]); c[b/8]>>(b%8)&1 == 0 {
						z[b] = -z[b]
					}
				}
			}
			var filter *roaring.Bitmap
			if density := rng.IntN(4); density > 0 {
				filter = roaring.New()
				for i := range row + 5 {
					if rng.IntN(1<<(4*density-4)) == 0 {
						filter.Add(i)
					}
				}
			}
			k := 1 + rng.IntN(20)
			if rng.IntN(6) == 0 {
				k = int(row) + rng.IntN(2)
			}
			o.checkBest(t, table, z, NewScorer(z), filter, max(k, 1))
			for b := range z {
				z[b] = math.Copysign(float64(rng.IntN(6)*rng.IntN(3)), z[b])
			}
			o.checkBest(t, table, z, inWholes(z), filter, max(k, 1))
		}
	})
}

// Among twenty thousand codes searches choose lookups by themselves, and give them up.
func TestBestOfManyCodes(t *testing.T) {
	effort.Slow(t)
	for _, q := range []int{64, 128} {
		if q == 128 && testing.Short() {
			continue
		}
		rng := seed.Rand(t, uint64(q), 3)
		w, o := NewWriter(q), &oracle{q, map[uint32][]byte{}}
		codes := sample(rng, q, 24_000, 400)
		for row, b := range codes[:22_000] {
			add(t, w, o, uint32(row), b)
		}
		install(t, w, q/16, 0)
		for row := range 3000 {
			drop(w, o, uint32(4*row))
		}
		for row, b := range codes[22_000:] {
			add(t, w, o, uint32(22_000+row), b)
		}
		table := w.Publish()
		some := roaring.New()
		for row := range uint32(24_000) {
			if row%7 == 0 {
				some.Add(row)
			}
		}
		plans := map[Plan]int{}
		for i := range 20 {
			z := projectionOf(rng, toCode(codes[i*1001]), q)
			if i%2 == 0 { // unsure bits are the ones that differ
				for b := range z {
					z[b] = math.Copysign(z[b]*z[b]*z[b], z[b]+rng.NormFloat64()/4)
				}
			}
			var filter *roaring.Bitmap
			if i%3 == 0 {
				filter = some
			}
			k := []int{1, 10, 300, 5000, 40_000}[i%5]
			o.checkBest(t, table, z, NewScorer(z), filter, k)
			var e Explain
			if _, err := table.Best(ctx, &Query{}, NewScorer(z), 1, nil, &e); err != nil {
				t.Fatal(err)
			}
			plans[e.Plan]++
			if e.Plan == PlanMemory && !e.Abandoned && e.Scanned > e.Tail {
				t.Errorf("%+v", e)
			}
		}
		if plans[PlanMemory] == 0 {
			t.Errorf("%d bits: no lookups: %v", q, plans)
		}
	}
}

// Weights replace the number of rows. A cancelled search returns the error of its
// context.
func TestBestWeightsAndCancel(t *testing.T) {
	w := NewWriter(16)
	for i := range uint32(6) {
		n, _, err := w.Number(codec.Code{uint64(1)<<i - 1})
		if err != nil {
			t.Fatal(err)
		}
		w.Add(n, i)
	}
	z := make([]float64, 16)
	for b := range z {
		z[b] = -1
	}
	table, by := w.Publish(), NewScorer(z)
	weight := func(n uint32, distance int) int {
		if int(n) != distance {
			t.Errorf("code %d at %d", n, distance)
		}
		return int(n % 3)
	}
	got, err := table.Best(ctx, &Query{Weight: weight}, by, 3, nil, nil)
	if err != nil || len(got) != 2 || got[0] != (Scored{1, 1, 14}) || got[1] != (Scored{2, 2, 12}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := table.Best(ctx, &Query{}, by, 0, nil, nil); got != nil || err != nil {
		t.Errorf("k = 0: %v, %v", got, err)
	}
	cctx, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := table.Best(cctx, &Query{}, by, 3, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A store gives the answers of a table, and its errors come back.
func TestStoredBestAgreesWithTheDefinition(t *testing.T) {
	broken := errors.New("broken")
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
		q := rapid.SampledFrom([]int{8, 24, 72}).Draw(t, "bits")
		m := &memoryStore{split: NewSplit(q, (q+15)/16), codes: map[uint32][]byte{},
			weights: map[uint32]int{}, err: broken, left: 1 << 40}
		o := &oracle{q, map[uint32][]byte{}}
		seen, row := map[string]bool{}, uint32(0)
		for i, b := range sample(rng, q, rapid.IntRange(0, 400).Draw(t, "codes"), 4) {
			n := uint32(3*i + 1)
			if seen[string(b)] {
				continue
			}
			seen[string(b)] = true
			m.numbers, m.codes[n], m.weights[n] = append(m.numbers, n), b, max(0, rng.IntN(5)-1)
			for range m.weights[n] {
				o.rows[row] = b
				row++
			}
		}
		z, k := drawProjection(rng, q), rapid.IntRange(1, 300).Draw(t, "k")
		by := NewScorer(z)
		d := &Stored{Split: m.split, Codes: len(m.numbers), Bits: q, Store: m, Costs: new(StoredCosts)}
		got, err := d.Best(ctx, by, k, nil, nil)
		if err != nil || !slices.IsSortedFunc(got, Scored.Compare) {
			t.Fatalf("%v, %v", got, err)
		}
		for i := range got {
			if got[i].Score != by.Score(toCode(m.codes[got[i].Number])) {
				t.Fatalf("code %d: score %g", got[i].Number, got[i].Score)
			}
			got[i].Number = 0
		}
		slices.SortFunc(got, func(a, b Scored) int {
			return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Distance, b.Distance))
		})
		if want := o.bestOf(z, k, by, nil); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		for left := range 6 {
			m.left = left
			got, err := d.Best(ctx, by, k, []Scored{{Number: 7}}, nil)
			if err == nil && m.left < 0 || err != nil && (!errors.Is(err, broken) || len(got) != 1) {
				t.Fatalf("broken after %d calls: %v, %v", left, got, err)
			}
		}
	})
}
