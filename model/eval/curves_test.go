package eval

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
)

// naiveRadius counts pairs one by one, as in the definition.
func naiveRadius(e *evaluation, radius int) RadiusPoint {
	var within, good, relevant float64
	for q := range e.queryLabels {
		rel := e.relevant(q)
		for row := range e.db.Len() {
			if rel[row] {
				relevant++
			}
			different := 0
			for bit := range e.db.Bits() {
				if e.db.At(row).Bit(bit) != e.queries.At(q).Bit(bit) {
					different++
				}
			}
			if different <= radius {
				within++
				if rel[row] {
					good++
				}
			}
		}
	}
	return RadiusPoint{
		Radius:    radius,
		Precision: good / max(within, 1),
		Recall:    good / max(relevant, 1),
		Retrieved: within / float64(len(e.queryLabels)),
	}
}

// naiveTop is the mean precision of the first k over shuffled databases: the order of
// tied rows is random, and nothing is computed about it.
func naiveTop(rng *rand.Rand, score []float64, relevant []bool, k, shuffles int) float64 {
	sum := 0.0
	order := make([]int, len(score))
	for i := range order {
		order[i] = i
	}
	for range shuffles {
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		ranked := slices.Clone(order)
		slices.SortStableFunc(ranked, func(a, b int) int {
			switch {
			case score[a] < score[b]:
				return -1
			case score[a] > score[b]:
				return 1
			}
			return 0
		})
		for _, row := range ranked[:k] {
			if relevant[row] {
				sum++
			}
		}
	}
	return sum / float64(k) / float64(shuffles)
}

func TestRadiusAgainstPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for round := range 30 {
		e := randomEvaluation(rng, 1+rng.IntN(100), 1+rng.IntN(7))
		if round%5 == 0 {
			for i := range e.queryLabels {
				e.queryLabels[i] = nil // no item is relevant
			}
		}
		got, err := Evaluate(t.Context(), e.db, e.dbLabels, e.queries, e.queryLabels, 5)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.ByRadius) != e.db.Bits()+1 {
			t.Fatalf("%d radii", len(got.ByRadius))
		}
		for r, p := range got.ByRadius {
			want := naiveRadius(e, r)
			if p.Radius != r || !approx(p.Precision, want.Precision, 1e-12) ||
				!approx(p.Recall, want.Recall, 1e-12) || !approx(p.Retrieved, want.Retrieved, 1e-9) {
				t.Fatalf("round %d: %+v, want %+v", round, p, want)
			}
			if r > 0 && p.Recall < got.ByRadius[r-1].Recall {
				t.Fatalf("round %d: recall falls at radius %d", round, r)
			}
		}
	}
}

// The expectation is near the mean over many shuffles; TestTopByHand is exact.
func TestTopAgainstShuffles(t *testing.T) {
	effort.WithoutRace(t)
	rng := rand.New(rand.NewPCG(8, 8))
	const queries, shuffles = 3, 4000
	for _, rows := range []int{1, 9, 10, 60} {
		for _, asymmetric := range []bool{false, true} {
			e := randomEvaluation(rng, rows, queries)
			var got Metrics
			var err error
			if asymmetric {
				got, err = EvaluateAsymmetric(t.Context(), e.db, e.dbLabels, e.z, e.queryLabels, 5)
			} else {
				got, err = Evaluate(t.Context(), e.db, e.dbLabels, e.queries, e.queryLabels, 5)
			}
			if err != nil {
				t.Fatal(err)
			}
			var ks []int
			for _, p := range got.ByTop {
				ks = append(ks, p.K)
				want := 0.0
				for q := range queries {
					want += naiveTop(rng, e.scores(q, asymmetric), e.relevant(q), p.K, shuffles) / queries
				}
				// Five standard deviations of the mean of a share.
				if !approx(p.Precision, want, 5*.5/63) {
					t.Errorf("%d rows, asymmetric %v: precision of the first %d is %v, want %v", rows,
						asymmetric, p.K, p.Precision, want)
				}
			}
			want := map[int]string{1: "[1]", 9: "[1]", 10: "[1 10]", 60: "[1 10 20 50]"}[rows]
			if fmt.Sprint(ks) != want {
				t.Errorf("%d rows: K = %v, want %s", rows, ks, want)
			}
			if asymmetric != (got.ByRadius == nil) {
				t.Errorf("asymmetric %v: radii %v", asymmetric, got.ByRadius)
			}
		}
	}
}

// TestTopByHand has a tie that begins before the tenth place and ends after it:
// 8 rows at distance 0, 2 of them relevant, then 4 at distance 1, 3 of them
// relevant. Of these four two are among the first ten: 1.5 relevant ones.
func TestTopByHand(t *testing.T) {
	for _, reversed := range []bool{false, true} {
		db := codec.NewCodes(8, 0)
		var labels [][]uint32
		row := func(code uint64, label uint32) {
			db.Append(codec.Code{code})
			labels = append(labels, []uint32{label})
		}
		rows := []func(){}
		for i := range 8 {
			rows = append(rows, func() { row(0, uint32(max(0, 2-i))) }) // 2, 1, 0, 0, ...
		}
		for i := range 4 {
			rows = append(rows, func() { row(16, uint32(min(1, i))) })
		}
		if reversed {
			slices.Reverse(rows)
		}
		for _, add := range rows {
			add()
		}
		queries := codec.NewCodes(8, 0)
		queries.Append(codec.Code{0})
		got, err := Evaluate(t.Context(), db, labels, queries, [][]uint32{{1, 2}}, 5)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.ByTop) != 2 || !approx(got.ByTop[0].Precision, 2./8, 1e-15) ||
			!approx(got.ByTop[1].Precision, 3.5/10, 1e-15) {
			t.Errorf("reversed %v: %+v", reversed, got.ByTop)
		}
		for r, want := range []RadiusPoint{{0, 2. / 8, 2. / 5, 8}, {1, 5. / 12, 1, 12}, {2, 5. / 12, 1, 12}} {
			if got.ByRadius[r] != want {
				t.Errorf("reversed %v: %+v, want %+v", reversed, got.ByRadius[r], want)
			}
		}
	}
}

// Curves of queries without a relevant item count the pairs found, none of them
// relevant.
func TestCurvesOfNothing(t *testing.T) {
	e := randomEvaluation(rand.New(rand.NewPCG(9, 9)), 30, 2)
	e.queryLabels = [][]uint32{{77}, nil}
	got, err := Evaluate(t.Context(), e.db, e.dbLabels, e.queries, e.queryLabels, 5)
	if err != nil {
		t.Fatal(err)
	}
	if last := got.ByRadius[16]; last != (RadiusPoint{Radius: 16, Retrieved: 30}) {
		t.Errorf("%+v", last)
	}
	for _, p := range got.ByTop {
		if p.Precision != 0 {
			t.Errorf("%+v", p)
		}
	}
	if got, err = Evaluate(t.Context(), e.db, e.dbLabels, codec.Codes{}, nil, 5); err != nil ||
		got.ByTop != nil || got.ByRadius != nil {
		t.Errorf("no queries: %+v, %v", got, err)
	}
}
