package mih

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
)

// clustered returns n different codes of q bits, some of them near others.
func clustered(rng *rand.Rand, q, n int) codec.Codes {
	codes, seen := codec.NewCodes(q, n), map[string]bool{}
	for codes.Len() < n {
		c := codec.NewCode(q)
		if codes.Len() > 0 && rng.IntN(4) > 0 {
			copy(c, codes.At(rng.IntN(codes.Len())))
			for range rng.IntN(1 + q/4) {
				c.Flip(rng.IntN(q))
			}
		} else {
			for j := range q {
				if rng.IntN(2) == 0 {
					c.Flip(j)
				}
			}
		}
		if k := fmt.Sprint(c); !seen[k] || q < 16 {
			seen[k] = true
			codes.Append(c)
		}
	}
	return codes
}

// allPairs is the definition of a join.
func allPairs(j *Join) (pairs []Pair) {
	for a := j.From; a < j.Codes.Len(); a++ {
		for b := range a {
			if j.Across && b >= j.From {
				break
			}
			d := 0
			for k, w := range j.Codes.At(a) {
				d += bits.OnesCount64(w ^ j.Codes.At(b)[k])
			}
			if d <= j.Radius {
				pairs = append(pairs, Pair{uint32(a), uint32(b), uint16(d)})
			}
		}
	}
	return pairs
}

func joined(t testing.TB, j *Join) (pairs []Pair) {
	err := j.Run(t.Context(), func(some []Pair) error {
		pairs = append(pairs, some...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(pairs, func(a, b Pair) int {
		return slices.Compare([]uint32{a.Later, a.Earlier}, []uint32{b.Later, b.Earlier})
	})
	return pairs
}

func TestJoinAgreesWithTheDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, q := range []int{8, 16, 24, 64, 72, 128, 256, 1024} {
		for _, n := range []int{0, 1, 2, 60, 500} {
			for _, r := range []int{0, 1, 3, q / 16, q / 8, q / 3, q, q + 9} {
				j := &Join{Codes: clustered(rng, q, n), Radius: r, From: rng.IntN(n + 1),
					Across: rng.IntN(2) == 0, Workers: 1 + rng.IntN(3)}
				if rng.IntN(3) == 0 {
					j.From, j.Across = 0, false
				}
				if got, want := joined(t, j), allPairs(j); !slices.Equal(got, want) {
					t.Fatalf("%d codes of %d bits within %d, from %d, across %v: %d pairs, want %d",
						n, q, r, j.From, j.Across, len(got), len(want))
				}
			}
		}
	}
}

// Each way to cut codes gives the same pairs, whichever is predicted to be fastest.
func TestAllCutsOfAJoinAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, q := range []int{16, 64, 80, 256} {
		codes := clustered(rng, q, 130)
		for _, r := range []int{1, 3, 8, 15} {
			plans := []joinPlan{{blocks: []block{{}}}} // all codes are compared
			for _, cut := range joinCuts(q, r) {
				order := make(bitOrder, q)
				for k, bit := range rng.Perm(q) {
					order[k] = uint16(bit)
				}
				plans = append(plans, joinPlan{nil, cut.blocks}, joinPlan{order.deal(cut.split), cut.blocks})
			}
			for i, plan := range plans {
				j := &Join{Codes: codes, Radius: r, From: rng.IntN(2) * 60, Across: rng.IntN(2) == 0,
					fixed: &plan}
				if got, want := joined(t, j), allPairs(j); !slices.Equal(got, want) {
					t.Fatalf("plan %d of %d bits within %d, from %d, across %v: %d pairs, want %d",
						i, q, r, j.From, j.Across, len(got), len(want))
				}
			}
		}
	}
}

// Bits that are the same in all codes are left out where a join looks at first, so that its blocks tell
// codes apart.
func TestJoinOfConstantBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const q, n = 256, 30_000
	codes := codec.NewCodes(q, n)
	for range n {
		c := codec.NewCode(q)
		for k := range c {
			c[k] = rng.Uint64() &^ (1<<32 - 1)
		}
		codes.Append(c)
	}
	plan := (&Join{Codes: codes, Radius: 3}).plan()
	if plan.order == nil || len(plan.blocks) < 2 {
		t.Fatalf("%d blocks, in the natural order: %v", len(plan.blocks), plan.order == nil)
	}
	ordered := plan.order.applyAll(codes)
	for i := range plan.blocks {
		keys := map[uint64]bool{}
		for k := range 50 {
			keys[plan.blocks[i].key(ordered.At(k))] = true
		}
		if len(keys) < 40 {
			t.Errorf("block %d has %d values in 50 codes", i, len(keys))
		}
	}
}

func TestJoinEnds(t *testing.T) {
	codes := clustered(rand.New(rand.NewPCG(5, 6)), 64, 3000)
	wrong := errors.New("no more")
	calls := 0
	err := (&Join{Codes: codes, Radius: 64}).Run(t.Context(), func([]Pair) error {
		calls++
		return wrong
	})
	if !errors.Is(err, wrong) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&Join{Codes: codes, Radius: 3}).Run(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func BenchmarkJoin(b *testing.B) {
	for _, c := range []struct{ q, n, r int }{
		{64, 1e5, 3}, {64, 1e6, 10}, {64, 1e7, 3}, {128, 1e6, 12}, {256, 1e5, 31}, {256, 1e6, 31},
	} {
		b.Run(fmt.Sprintf("%dbits/%d/within%d", c.q, c.n, c.r), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			codes := codec.NewCodes(c.q, c.n)
			for i := range c.n {
				code := codec.NewCode(c.q)
				for k := range code {
					code[k] = rng.Uint64()
				}
				if i > 0 && i%100 == 0 {
					copy(code, codes.At(rng.IntN(i)))
					for range rng.IntN(c.r + 1) {
						code.Flip(rng.IntN(c.q))
					}
				}
				codes.Append(code)
			}
			for b.Loop() {
				j := &Join{Codes: codes, Radius: c.r}
				n := 0
				if err := j.Run(b.Context(), func(p []Pair) error { n += len(p); return nil }); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(n), "pairs")
			}
		})
	}
}
