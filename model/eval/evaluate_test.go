package eval

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/rank"
)

func approx(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }

// naiveFigures is the definition: sort, then walk down the ranking.
func naiveFigures(score []float64, relevant []bool, top int) (f figures) {
	order := make([]int, len(score))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case score[a] < score[b]:
			return -1
		case score[a] > score[b]:
			return 1
		}
		return 0
	})
	return walkOrder(order, relevant, top)
}

func walkOrder(order []int, relevant []bool, top int) (f figures) {
	var hits, inTop float64
	for rank, row := range order {
		if !relevant[row] {
			continue
		}
		hits++
		f.ap += hits / float64(rank+1)
		if rank < top {
			inTop++
			f.apAt += hits / float64(rank+1)
		}
	}
	if hits == 0 {
		return figures{}
	}
	f.ap /= hits
	f.apAt /= max(inTop, 1)
	f.precision = inTop / float64(min(top, len(order)))
	f.recall = inTop / hits
	return f
}

// permutedAP is the mean of the average precision over every order of the rows
// that keeps the scores ascending.
func permutedAP(score []float64, relevant []bool) float64 {
	var sum, count float64
	order := make([]int, 0, len(score))
	used := make([]bool, len(score))
	var extend func()
	extend = func() {
		if len(order) == len(score) {
			sum += walkOrder(order, relevant, 1).ap
			count++
			return
		}
		best := math.Inf(1)
		for i, s := range score {
			if !used[i] {
				best = min(best, s)
			}
		}
		for i, s := range score {
			if !used[i] && s == best {
				used[i] = true
				order = append(order, i)
				extend()
				order = order[:len(order)-1]
				used[i] = false
			}
		}
	}
	extend()
	return sum / count
}

type evaluation struct {
	db, queries           codec.Codes
	dbLabels, queryLabels [][]uint32
	z                     [][]float64
}

// randomEvaluation makes codes of 16 bits of which few vary, so that ties abound, and
// projections with few values, so that scores tie too.
func randomEvaluation(rng *rand.Rand, rows, queries int) *evaluation {
	e := &evaluation{db: codec.NewCodes(16, 0), queries: codec.NewCodes(16, 0)}
	labels := func() (set []uint32) {
		for l := range uint32(4) {
			if rng.IntN(4) == 0 {
				set = append(set, l*1000)
			}
		}
		return set
	}
	for range rows {
		e.db.Append(codec.Code{rng.Uint64() & 0x8103})
		e.dbLabels = append(e.dbLabels, labels())
	}
	for range queries {
		e.queries.Append(codec.Code{rng.Uint64() & 0x8103})
		e.queryLabels = append(e.queryLabels, labels())
		z := make([]float64, 16)
		for j := range z {
			z[j] = float64(rng.IntN(3) - 1)
		}
		e.z = append(e.z, z)
	}
	return e
}

func (e *evaluation) relevant(query int) []bool {
	r := make([]bool, e.db.Len())
	for row := range r {
		for _, l := range e.dbLabels[row] {
			r[row] = r[row] || slices.Contains(e.queryLabels[query], l)
		}
	}
	return r
}

func (e *evaluation) scores(query int, asymmetric bool) []float64 {
	s := make([]float64, e.db.Len())
	for row := range s {
		if !asymmetric {
			s[row] = float64(codec.Distance(e.db.At(row), e.queries.At(query)))
			continue
		}
		for j, v := range e.z[query] {
			if e.db.At(row).Bit(j) {
				s[row] -= v
			} else {
				s[row] += v
			}
		}
	}
	return s
}

func TestEvaluateAgainstSortingAndPermutations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for round := range 60 {
		rows := 1 + rng.IntN(7)
		permute := true
		if round%4 == 0 {
			rows, permute = 200, false
		}
		e := randomEvaluation(rng, rows, 5)
		top := 1 + rng.IntN(10)
		for _, asymmetric := range []bool{false, true} {
			var got Metrics
			var err error
			if asymmetric {
				got, err = EvaluateAsymmetric(t.Context(), e.db, e.dbLabels, e.z, e.queryLabels, top)
			} else {
				got, err = Evaluate(t.Context(), e.db, e.dbLabels, e.queries, e.queryLabels, top)
			}
			if err != nil {
				t.Fatal(err)
			}
			var want Metrics
			for q := range e.queryLabels {
				score, relevant := e.scores(q, asymmetric), e.relevant(q)
				f := naiveFigures(score, relevant, top)
				want.MAP += f.ap / 5
				want.MAPAt += f.apAt / 5
				want.PrecisionAt += f.precision / 5
				want.RecallAt += f.recall / 5
				if permute {
					want.MAPTie += permutedAP(score, relevant) / 5
				}
			}
			if !permute {
				want.MAPTie = got.MAPTie
			}
			for _, pair := range [][2]float64{{got.MAP, want.MAP}, {got.MAPTie, want.MAPTie},
				{got.MAPAt, want.MAPAt},
				{got.PrecisionAt, want.PrecisionAt}, {got.RecallAt, want.RecallAt}} {
				if !approx(pair[0], pair[1], 1e-12) {
					t.Fatalf("%d rows, top %d, asymmetric %v: %+v, want %+v", rows, top, asymmetric, got,
						want)
				}
			}
			if got.Top != top || got.Queries != 5 || got.Database != rows {
				t.Fatalf("%+v", got)
			}
		}
	}
}

// The harmonic form stays exact where the direct sum is: many rows, one tie.
func TestTieExpectationAgainstDirectSum(t *testing.T) {
	harmonic := make([]float64, 300_001)
	for i := range harmonic[1:] {
		harmonic[i+1] = harmonic[i] + 1/float64(i+1)
	}
	for _, c := range []rank.Tie{{Rows: 1, Relevant: 1, Before: 0, RelevantBefore: 0},
		{Rows: 1, Relevant: 1, Before: 299_999, RelevantBefore: 7},
		{Rows: 100_000, Relevant: 3, Before: 200_000, RelevantBefore: 100_000},
		{Rows: 100_000, Relevant: 100_000, Before: 200_000, RelevantBefore: 10},
		{Rows: 250_000, Relevant: 120_000, Before: 0, RelevantBefore: 0},
		{Rows: 2, Relevant: 1, Before: 5, RelevantBefore: 5}} {
		var want float64
		g := 0.0
		if c.Rows > 1 {
			g = float64(c.Relevant-1) / float64(c.Rows-1)
		}
		for i := 1; i <= int(c.Rows); i++ {
			want += float64(c.Relevant) / float64(c.Rows) * (float64(c.RelevantBefore) + 1 +
				float64(i-1)*g) / float64(int(c.Before)+i)
		}
		if got := c.Expectation(harmonic); !approx(got/want, 1, 1e-9) {
			t.Errorf("%+v: %g, want %g", c, got, want)
		}
	}
}

func TestEvaluateIsTheSameOnAnyMachine(t *testing.T) {
	e := randomEvaluation(rand.New(rand.NewPCG(3, 3)), 500, 40)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one, _ := Evaluate(t.Context(), e.db, e.dbLabels, e.queries, e.queryLabels, 50)
	runtime.GOMAXPROCS(5)
	if five, _ := Evaluate(t.Context(), e.db, e.dbLabels, e.queries, e.queryLabels, 50); !reflect.DeepEqual(
		five, one) {
		t.Fatalf("%+v on five, %+v on one", five, one)
	}
}

func TestEvaluateRefuses(t *testing.T) {
	e := randomEvaluation(rand.New(rand.NewPCG(2, 2)), 10, 3)
	ctx := t.Context()
	other := codec.NewCodes(24, 0)
	for range 3 {
		other.Append(codec.Code{1})
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	nan := [][]float64{e.z[0], e.z[1], slices.Repeat([]float64{math.NaN()}, 16)}
	short := [][]float64{e.z[0], e.z[1], e.z[2][:15]}
	for name, c := range map[string]struct {
		want error
		run  func() (Metrics, error)
	}{
		"bits": {model.ErrMismatch,
			func() (Metrics, error) { return Evaluate(ctx, e.db, e.dbLabels, other, e.queryLabels, 5) }},
		"rows": {model.ErrMismatch,
			func() (Metrics, error) {
				return Evaluate(ctx, e.db, e.dbLabels[1:], e.queries, e.queryLabels,
					5)
			}},
		"queries": {model.ErrMismatch,
			func() (Metrics, error) {
				return Evaluate(ctx, e.db, e.dbLabels, e.queries, e.queryLabels[1:],
					5)
			}},
		"top": {model.ErrOption,
			func() (Metrics, error) { return Evaluate(ctx, e.db, e.dbLabels, e.queries, e.queryLabels, 0) }},
		"context": {context.Canceled,
			func() (Metrics, error) {
				return Evaluate(cancelled, e.db, e.dbLabels, e.queries, e.queryLabels,
					5)
			}},
		"z": {model.ErrMismatch,
			func() (Metrics, error) {
				return EvaluateAsymmetric(ctx, e.db, e.dbLabels, e.z[1:], e.queryLabels,
					5)
			}},
		"z length": {model.ErrMismatch,
			func() (Metrics, error) {
				return EvaluateAsymmetric(ctx, e.db, e.dbLabels, short, e.queryLabels,
					5)
			}},
		"NaN": {model.ErrNotFinite,
			func() (Metrics, error) {
				return EvaluateAsymmetric(ctx, e.db, e.dbLabels, nan, e.queryLabels,
					5)
			}},
	} {
		if _, err := c.run(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if m, err := Evaluate(ctx, codec.Codes{}, nil, e.queries, e.queryLabels, 5); err != nil ||
		m.Queries != 3 || m.MAP != 0 {
		t.Errorf("no database: %+v, %v", m, err)
	}
	if m, err := Evaluate(ctx, e.db, e.dbLabels, codec.Codes{}, nil, 5); err != nil || m.Database != 10 ||
		m.MAP != 0 {
		t.Errorf("no queries: %+v, %v", m, err)
	}
}

func BenchmarkEvaluate(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, shape := range []struct {
		name     string
		distinct int
	}{{"500codes", 500}, {"100kcodes", 100_000}} {
		pool := make([]codec.Code, shape.distinct)
		for i := range pool {
			pool[i] = codec.Code{rng.Uint64()}
		}
		db, queries := codec.NewCodes(64, 0), codec.NewCodes(64, 0)
		var dbLabels, queryLabels [][]uint32
		var z [][]float64
		for range 200_000 {
			db.Append(pool[rng.IntN(len(pool))])
			dbLabels = append(dbLabels, []uint32{rng.Uint32N(10)})
		}
		for range 100 {
			queries.Append(codec.Code{rng.Uint64()})
			queryLabels = append(queryLabels, []uint32{rng.Uint32N(10)})
			row := make([]float64, 64)
			for j := range row {
				row[j] = rng.NormFloat64()
			}
			z = append(z, row)
		}
		b.Run("hamming/"+shape.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Evaluate(b.Context(), db, dbLabels, queries, queryLabels, 50); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("asymmetric/"+shape.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := EvaluateAsymmetric(b.Context(), db, dbLabels, z, queryLabels, 50); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
