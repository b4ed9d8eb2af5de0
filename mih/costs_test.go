package mih

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
)

// A small or bare segment beside a large one is scanned, and the large one is still
// searched by lookups.
func TestEachSegmentIsSearchedInItsOwnWay(t *testing.T) {
	for _, bare := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(1, 2))
		w := NewWriter(128)
		add := func(n int, bare bool) {
			for range n {
				number, _, err := w.Number(codec.Code{rng.Uint64(), rng.Uint64()})
				if err != nil {
					t.Fatal(err)
				}
				w.Add(number, number)
			}
			b := w.Publish().Rebuild()
			b.keep, b.Bare = len(b.t.segments), bare
			if err := b.Run(context.Background()); err != nil {
				t.Fatal(err)
			}
			w.Install(b)
		}
		add(100_000, false)
		add(2000, bare)
		table := w.Publish()
		// Whatever this machine has measured, a scan of the large segment costs more.
		table.segments[0].costs = costs{scan: 1e12, most: 1e9, pace: 1, lookups: make([]float64, 130),
			compares: make([]float64, 130), found: make([]float64, 130)}
		var e Explain
		query := &Query{Code: table.Code(7)}
		if _, _, err := table.Radius(context.Background(), query, 8, nil, &e); err != nil {
			t.Fatal(err)
		}
		if e.Plan != PlanMemory || e.Scanned > 2000 || e.Probes == 0 {
			t.Errorf("bare %v: radius 8 by %v, %d codes scanned, %d lookups", bare, e.Plan, e.Scanned,
				e.Probes)
		}
		if _, err := table.Nearest(context.Background(), query, 1, nil, &e); err != nil {
			t.Fatal(err)
		}
		if e.Plan != PlanMemory || e.Scanned > 2000 || e.Probes == 0 {
			t.Errorf("bare %v: nearest by %v, %d codes scanned, %d lookups", bare, e.Plan, e.Scanned,
				e.Probes)
		}
	}
}

// A query in the middle of a large cluster finds full buckets. It counts their codes,
// and scans instead of comparing them if that takes less time.
func TestFullBucketsAreScannedInstead(t *testing.T) {
	for _, q := range []int{64, 128, 256} {
		rng := rand.New(rand.NewPCG(3, 4))
		w, centre := NewWriter(q), codec.NewCode(q)
		for row := range uint32(20_000) {
			code := append(codec.Code(nil), centre...)
			for range q / 8 {
				code.Flip(rng.IntN(q))
			}
			if row%2 == 0 {
				for i := range code {
					code[i] = rng.Uint64()
				}
			}
			number, _, err := w.Number(code)
			if err != nil {
				t.Fatal(err)
			}
			w.Add(number, row)
		}
		install(t, w, q/16, 0)
		table := w.Publish()
		c := &table.segments[0].costs
		*c = costs{scan: 300, most: 1e9, pace: 1, lookups: make([]float64, q+2),
			compares: make([]float64, q+2), found: make([]float64, q+2)}
		for plan, abandoned := range map[Plan]bool{PlanAuto: true, PlanMemory: false} {
			query := &Query{Code: centre, Plan: plan}
			var radius, nearest Explain
			if _, _, err := table.Radius(ctx, query, q/8, nil, &radius); err != nil {
				t.Fatal(err)
			}
			if _, err := table.Nearest(ctx, query, 50, nil, &nearest); err != nil {
				t.Fatal(err)
			}
			for what, e := range map[string]Explain{"radius": radius, "nearest": nearest} {
				if e.Abandoned != abandoned ||
					abandoned && (e.Compared > 500 || e.Scanned != table.Distinct()) {
					t.Errorf("%d bits, %v by %v: abandoned %v, %d compared, %d scanned", q, what, plan,
						e.Abandoned, e.Compared, e.Scanned)
				}
			}
		}
	}
}
