package fit

import (
	"context"
	"iter"
	"math"
	"math/rand/v2"

	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// memory is a source over rows in memory: vectors by modality and item.
type memory struct {
	vectors [][][]float32
	labels  [][]uint32
}

func (s *memory) Examples(ctx context.Context) iter.Seq2[model.Example, error] {
	return func(yield func(model.Example, error) bool) {
		// One example for all items, overwritten: training must not keep it.
		ex := model.Example{Vectors: make([]model.Vector, len(s.vectors))}
		for i, labels := range s.labels {
			for t, rows := range s.vectors {
				if rows[i] == nil {
					ex.Vectors[t].Value = nil
				} else {
					ex.Vectors[t].Value = append(ex.Vectors[t].Value[:0], rows[i]...)
				}
			}
			ex.Labels = append(ex.Labels[:0], labels...)
			if !yield(ex, nil) {
				return
			}
		}
	}
}

// denseAll returns rows as vectors, which alias them.
func denseAll(rows [][]float32) (xs []model.Vector) {
	for _, x := range rows {
		xs = append(xs, model.Dense(x))
	}
	return xs
}

func synthetic(d *synth.Data) *memory { return &memory{vectors: d.Vectors, labels: d.Labels} }

func modalitiesOf(dims []int) []model.Modality {
	names := []string{"image", "text", "sound"}
	var ms []model.Modality
	for t, d := range dims {
		ms = append(ms, model.Modality{Name: names[t], Dim: d})
	}
	return ms
}

// settled returns the options with nothing left to choose: settings that they do not
// give are raw, rbf, 0.01 and the sum.
func settled(modalities []model.Modality, opt Options) Options {
	full, err := opt.withDefaults(modalities)
	if err != nil {
		panic(err)
	}
	if full.Fusion.Rule == FusionAuto {
		full.Fusion.Rule = FusionSum
	}
	return full
}

// deterministicProcs are numbers of processors that give the same bytes, one of them twice unless that takes
// too long.
var deterministicProcs = []int{1, 5, 5}

func init() {
	if effort.Race {
		deterministicProcs = deterministicProcs[:2]
	}
}

// examples returns the items of d; it hides the labels of item i if hide(i).
func examples(d *synth.Data, hide func(i int) bool) []model.Example {
	var items []model.Example
	for i, labels := range d.Labels {
		ex := model.Example{Labels: labels}
		for _, rows := range d.Vectors {
			ex.Vectors = append(ex.Vectors, model.Dense(rows[i]))
		}
		if hide(i) {
			ex.Labels = nil
		}
		items = append(items, ex)
	}
	return items
}

func never(int) bool { return false }

func momentsOf(rows [][]float32) *model.Moments {
	m := model.NewMoments(model.Modality{Dim: len(rows[0])})
	m.Add(denseAll(rows), 2)
	return m
}

// positives returns vectors without negative numbers, with a column of zeros, a
// constant column and a zero vector.
func positives(n int) [][]float32 {
	rng := rand.New(rand.NewPCG(3, 4))
	rows := make([][]float32, n)
	for i := range rows {
		rows[i] = []float32{rng.Float32(), 100 * rng.Float32() * rng.Float32(), 0, 7, 1e-6 * rng.Float32()}
	}
	rows[n/2] = make([]float32, 5)
	rows[n/2][3] = 7
	return rows
}

func approx(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }
