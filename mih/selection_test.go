package mih

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// A scan counts codes without looking at rows. So codes around the query that are dead,
// or stand for many rows, must not mislead it. The nearest codes stand together in the
// segment, so its guesses are wrong too.
func TestScansAmongDeadCodes(t *testing.T) {
	for _, dead := range []int{0, 30, 1000, 5900, 6000} {
		rng := seed.Rand(t, uint64(dead), 11)
		const q = 64
		w, o := NewWriter(q), &oracle{q, map[uint32][]byte{}}
		query, row := make([]byte, q/8), uint32(0)
		for i := range 15_000 { // the first 6,000 are near the query, the others anywhere
			b := make([]byte, q/8)
			for j := range b {
				b[j] = byte(rng.Uint32())
			}
			if i < 6000 {
				clear(b[:6])
			}
			for range 1 + i%3%2*i%7 {
				add(t, w, o, row, b)
				row++
			}
			if i == 12_000 {
				install(t, w, 4, 0)
			}
		}
		for row := range row {
			if n, ok := w.Table().CodeOf(row); ok && int(n) < dead {
				drop(w, o, row)
			}
		}
		table := w.Publish()
		for _, k := range []int{1, 10, 150, 2000, 9000, 1 << 62} {
			for _, plan := range []Plan{PlanScan, PlanAuto} {
				got, err := table.Nearest(ctx, &Query{Code: toCode(query), Plan: plan}, k, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				o.same(t, plan.String(), table.Code, got, o.nearest(query, k, nil))
				if !slices.IsSorted(got) {
					t.Errorf("%v: not by distance and number", plan)
				}
			}
		}
		stopped, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := table.Nearest(stopped, &Query{Code: toCode(query), Plan: PlanScan}, 3, nil,
			nil); !errors.Is(err, context.Canceled) {
			t.Errorf("a scan that was stopped: %v", err)
		}
	}
}

func TestSortByPosition(t *testing.T) {
	rng := seed.Rand(t, 1, 12)
	var scratch []codec.Near
	for _, limit := range []uint32{1, 7, 1 << 11, 1 << 20, math.MaxUint32} {
		var nears []codec.Near
		for range 700 {
			nears = append(nears, codec.NearOf(rng.IntN(9), rng.Uint32N(limit)))
		}
		want := slices.Clone(nears)
		slices.SortStableFunc(want,
			func(a, b codec.Near) int { return cmp.Compare(a.Position(), b.Position()) })
		if nears, scratch = sortByPosition(nears, scratch); !slices.Equal(nears, want) {
			t.Errorf("below %d: %x, want %x", limit, nears, want)
		}
	}
}
