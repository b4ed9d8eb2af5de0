package fit

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/rank"
)

// A family is generated data of one kind; seeds give other data of it.
type family struct {
	name string
	bits int // 0: the default
	dims []int
	make func(seed uint64, n int) *synth.Data
}

// families have several labels an item, balanced and with long tails, and more and less
// noise; and single labels with frequencies of 1:300.
func families(t *testing.T) []family {
	pairs := func(labels int, noise float64) family {
		dims := []int{64, 48}
		return family{fmt.Sprintf("pairs, %d of 24, noise %g", labels, noise), 0, dims,
			func(seed uint64, n int) *synth.Data {
				return synth.Pairs(synth.Config{Items: n, Classes: 24, LabelsPerItem: labels, Dims: dims,
					Noise: noise, Seed: seed})
			}}
	}
	many := func(labels, bits int, zipf bool, noise float64) family {
		name := fmt.Sprintf("families, 3 of %d, noise %g", labels, noise)
		if zipf {
			name += ", Zipf"
		}
		return family{name, bits, []int{48, 24}, func(seed uint64, n int) *synth.Data {
			return synth.ManyLabels{Items: n, Labels: labels, PerItem: 3, Zipf: zipf, Noise: noise,
				Seed: seed}.Make()
		}}
	}
	nuswide := func(noise float64) family {
		return family{fmt.Sprintf("nuswide, noise %g", noise), 0, []int{500, 1000},
			func(seed uint64, n int) *synth.Data {
				g := need(synth.NewNUSWide(seed, noise))(t)
				return g.Data(0, n)
			}}
	}
	return []family{
		pairs(2, 2), nuswide(.9), // these two at any time, all with -figures
		pairs(5, 2), pairs(3, 4), many(24, 0, true, 1.4), many(24, 0, true, 3), many(40, 0, false, 1.4),
		many(100, 128, true, 1.4),
		nuswide(.5), nuswide(.8),
		{"one of 20, 1:300", 0, []int{64, 32}, func(seed uint64, n int) *synth.Data {
			return synth.Unbalanced(seed, n, false)
		}},
	}
}

// known returns the labels of the items of the database that have one from the training.
func (h *halving) known() [][]uint32 {
	return slices.DeleteFunc(slices.Clone(h.database.Labels),
		func(l []uint32) bool { return !h.result.Model.Knows(l) })
}

// TestFamilies measures retrieval with labels as the aim against codes as the aim, among
// labelled items and among items without labels, as many as have trained. It checks that
// labels are as good, whether or not their mean is taken out.
func TestFamilies(t *testing.T) {
	effort.Slow(t)
	effort.WithoutRace(t)
	all, sizes, seeds := families(t), []int{300, 1500}, 3
	if !*allFigures {
		all, sizes, seeds = all[:effort.Of(2, 1)], sizes[:1], 1
	}
	const queries = 400
	for _, f := range all {
		for _, size := range sizes {
			mean := map[model.Aim]float64{}
			for _, aim := range []model.Aim{model.AimCodes, model.AimLabels} {
				var labelled, unlabelled [2]float64
				var centres []float64
				for seed := range seeds {
					d := f.make(uint64(seed), 2*size+queries)
					h := halve(t, d.Slice(0, 2*size), d.Slice(2*size, 2*size+queries),
						Options{Seed: uint64(seed), Bits: f.bits, Aim: aim})
					centres = append(centres, h.result.Report.Centre)
					known := h.known()
					db := codesOf(h.result.Model, known)
					parts := h.result.Model.Parts()
					without := h.figures(t, rank.Fusion{Weights: parts.Fusion, Mean: parts.Mean})
					for from := range f.dims {
						hamming := asked(t, h.result.Model, from, h.queries, db, known)
						labelled[from] += hamming.MAP / float64(seeds)
						unlabelled[from] += without[from] / float64(seeds)
						mean[aim] += (hamming.MAP + without[from]) / float64(4*seeds)
					}
				}
				slices.Sort(centres)
				t.Logf("| %s | %d | %v | %.3f / %.3f | %.3f / %.3f | centres %g", f.name, size, aim,
					labelled[0], labelled[1], unlabelled[0], unlabelled[1], centres)
			}
			failIf(t, mean[model.AimLabels] < mean[model.AimCodes]-.01,
				"%s, %d items: %.3f with labels as the aim, %.3f with codes", f.name, size,
				mean[model.AimLabels], mean[model.AimCodes])
		}
	}
}
