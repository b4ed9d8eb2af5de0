package mih

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
)

// A small or a bare segment beside a large one is scanned; the large one is
// searched by lookups all the same.
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
		// Whatever this machine has measured: a scan of the large segment costs more.
		table.segments[0].costs.scan, table.segments[0].costs.nearest = 1e12, 1e12
		var e Explain
		query := &Query{Code: table.Code(7)}
		if _, _, err := table.Radius(context.Background(), query, 8, nil, &e); err != nil {
			t.Fatal(err)
		}
		if e.Plan != PlanMemory || e.Scanned > 2000 || e.Probes == 0 {
			t.Errorf("bare %v: radius 8 by %v, %d codes scanned, %d lookups", bare, e.Plan, e.Scanned, e.Probes)
		}
		if _, err := table.Nearest(context.Background(), query, 1, nil, &e); err != nil {
			t.Fatal(err)
		}
		if e.Plan != PlanMemory || e.Scanned > 2000 || e.Probes == 0 {
			t.Errorf("bare %v: nearest by %v, %d codes scanned, %d lookups", bare, e.Plan, e.Scanned, e.Probes)
		}
	}
}
