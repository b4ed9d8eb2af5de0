package model

import (
	"context"
	"iter"

	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// memory is a source over rows in memory: vectors by modality and item.
type memory struct {
	vectors [][][]float32
	labels  [][]uint32
}

func (s *memory) Examples(ctx context.Context) iter.Seq2[Example, error] {
	return func(yield func(Example, error) bool) {
		// One example for all items, overwritten: training must not keep it.
		ex := Example{Vectors: make([]Vector, len(s.vectors))}
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
func denseAll(rows [][]float32) (xs []Vector) {
	for _, x := range rows {
		xs = append(xs, Dense(x))
	}
	return xs
}

func synthetic(d *synth.Data) *memory { return &memory{vectors: d.Vectors, labels: d.Labels} }

func modalitiesOf(dims []int) []Modality {
	names := []string{"image", "text", "sound"}
	var ms []Modality
	for t, d := range dims {
		ms = append(ms, Modality{Name: names[t], Dim: d})
	}
	return ms
}

// settled returns the options with nothing left to choose: settings that they do not
// give are raw, rbf, 0.01 and the sum.
func settled(modalities []Modality, opt Options) Options {
	full, err := opt.withDefaults(modalities)
	if err != nil {
		panic(err)
	}
	if full.Fusion.Rule == FusionAuto {
		full.Fusion.Rule = FusionSum
	}
	return full
}

// deterministicProcs are numbers of processors that give the same bytes, one of them twice unless that takes too long.
var deterministicProcs = []int{1, 5, 5}

func init() {
	if effort.Race {
		deterministicProcs = deterministicProcs[:2]
	}
}
