package mih

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// projectionOf returns a Gaussian projection whose signs are c.
func projectionOf(rng *rand.Rand, c codec.Code, q int) []float64 {
	z := make([]float64, q)
	for b := range z {
		if z[b] = math.Abs(rng.NormFloat64()); !c.Bit(b) {
			z[b] = -z[b]
		}
	}
	return z
}

// loaded returns a table of the distinct codes among codes, with one row each.
func loaded(b *testing.B, codes codec.Codes) *Table {
	w, seen := NewWriter(codes.Bits()), map[string]bool{}
	var numbers []uint32
	unique := codec.NewCodes(codes.Bits(), codes.Len())
	for i := range codes.Len() {
		if key := string(codes.At(i).AppendBytes(nil, codes.Bits())); !seen[key] {
			seen[key] = true
			numbers = append(numbers, uint32(len(numbers)))
			unique.Append(codes.At(i))
		}
	}
	if err := w.Load(ctx, numbers, unique, uint32(len(numbers)), false); err != nil {
		b.Fatal(err)
	}
	for _, n := range numbers {
		w.Add(n, n)
	}
	return w.Publish()
}

// projected returns n codes that are signs of linear projections of Gaussian points.
// The queries are projections of other points, as those of unlabelled items.
func projected(q, n, queries int) (codes codec.Codes, z [][]float64) {
	const factors = 24
	rng := rand.New(rand.NewPCG(1, 1))
	directions := make([][factors]float64, q)
	for b := range directions {
		for f := range factors {
			directions[b][f] = rng.NormFloat64() * math.Pow(.85, float64(f)/2)
		}
	}
	project := func() []float64 {
		var x [factors]float64
		for f := range x {
			x[f] = rng.NormFloat64()
		}
		out := make([]float64, q)
		for b := range out {
			for f, d := range &directions[b] {
				out[b] += d * x[f]
			}
		}
		return out
	}
	codes = codec.NewCodes(q, n)
	for range n {
		codes.Append(codec.PackSigns(codec.NewCode(q), project()))
	}
	for range queries {
		z = append(z, project())
	}
	return codes, z
}

// BenchmarkBest measures searches for the best ten scores among distinct codes of 128
// bits that are signs of correlated projections. The queries are projections of other
// points ("own"), or have magnitudes that tell nothing about the codes ("random"), near
// a code or not.
func BenchmarkBest(b *testing.B) {
	const q, queries = 128, 200
	for _, n := range []int{100_000, 1_000_000} {
		run := func(name string, table *Table, z [][]float64) {
			var scorers []*Scorer
			for _, z := range z {
				scorers = append(scorers, NewScorer(z))
			}
			for _, plan := range []Plan{PlanAuto, PlanMemory, PlanScan} {
				b.Run(fmt.Sprintf("codes=%d/%s/%v", n, name, plan), func(b *testing.B) {
					var e Explain
					var probes, candidates, compared, scanned, i int
					var out []Scored
					var err error
					for ; b.Loop(); i++ {
						if out, err = table.Best(ctx, &Query{Plan: plan}, scorers[i%queries], 10, out[:0],
							&e); err != nil {
							b.Fatal(err)
						}
						probes, candidates = probes+e.Probes, candidates+e.Candidates
						compared, scanned = compared+e.Compared, scanned+e.Scanned
					}
					b.ReportMetric(float64(probes)/float64(i), "lookups")
					b.ReportMetric(float64(candidates)/float64(i), "candidates")
					b.ReportMetric(float64(compared)/float64(i), "compared")
					b.ReportMetric(float64(scanned)/float64(i), "scanned")
				})
			}
		}
		codes, own := projected(q, n, queries)
		run("own", loaded(b, codes), own)
		codes, err := synth.Codes(synth.Projected, q, n, 1)
		if err != nil {
			b.Fatal(err)
		}
		members, fresh, err := synth.CodeQueries(synth.Projected, q, n, queries, 1)
		if err != nil {
			b.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		var near, far [][]float64
		for i := range queries {
			near = append(near, projectionOf(rng, members.At(i), q))
			far = append(far, projectionOf(rng, fresh.At(i), q))
		}
		table := loaded(b, codes)
		run("random/near", table, near)
		run("random/far", table, far)
	}
}
