package fit

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// TestManyLabelSets: with more label sets than can be solved for, one start can be judged
// if projections learn codes. Starts are not compared then. Projections that
// learn labels are solved for these, however many sets there are.
func TestManyLabelSets(t *testing.T) {
	effort.Slow(t)
	effort.WithoutRace(t)
	src := made(700, 24, func(rng *rand.Rand, class int) []float32 {
		return []float32{float32(class),
			rng.Float32()}
	})
	rng := rand.New(rand.NewPCG(7, 8))
	for i, own := range src.Labels {
		src.Labels[i] = slices.Compact(
			slices.Sorted(slices.Values([]uint32{own[0], uint32(rng.IntN(24)), uint32(rng.IntN(24))})))
	}
	for _, aim := range []model.Aim{model.AimLabels, model.AimCodes} {
		r := trained(t, src,
			Options{Bits: 24, Anchors: 30, Aim: aim})
		rep := r.Report
		stopIf(t, rep.LabelSets <= mostTargets || rep.Choices["image"].Unfit != "" ||
			rep.Choices["image"].MAP <= 0, "%d label sets, %+v", rep.LabelSets, rep.Choices["image"])
		failIf(t, aim == model.AimCodes && rep.Start != 1, "start %d", rep.Start)
	}
}

// TestStartsThatCannotBeJudged: if one modality can judge only one start, another one may
// judge more, or a start may be given. Fusions are then measured under the codes of the
// start that is taken.
func TestStartsThatCannotBeJudged(t *testing.T) {
	effort.Slow(t)
	effort.WithoutRace(t)
	dims := []int{4, 3}
	data := synth.Pairs(synth.Config{Items: 800, Classes: 24, Dims: dims, LabelsPerItem: 5, Noise: 1})
	for i := range data.Vectors[0] {
		if i >= 200 {
			data.Vectors[0][i] = nil
		}
	}
	given := Options{
		Bits: 24, Anchors: 30, Aim: model.AimCodes,
		Features: map[string]model.FeatureKind{"text": model.FeaturesRaw},
		Map:      map[string]model.MapKind{"text": model.MapRBF},
		Width:    map[string]float64{"text": 1}, Gamma: map[string]float64{"text": .1},
	}
	for name, opt := range map[string]Options{
		"a given start":            {Bits: 24, Anchors: 30, Aim: model.AimCodes, Start: 3},
		"one open modality":        given,
		"labels and a given start": {Bits: 24, Anchors: 30, Start: 3},
		"all given, and a start": {Bits: 24, Anchors: 30, Aim: model.AimCodes, Start: 3,
			Features: settledOpen(modalitiesOf(dims)).Features, Map: settledOpen(modalitiesOf(dims)).Map,
			Width: settledOpen(modalitiesOf(dims)).Width, Gamma: settledOpen(modalitiesOf(dims)).Gamma},
		"embedded labels, given start":  {Bits: 16, Anchors: 30, LabelEmbedding: true, Start: 3},
		"embedded labels, another seed": {Bits: 16, Anchors: 30, LabelEmbedding: true, Seed: 5},
	} {
		r, err := learned(t, data, opt)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		failIf(t, r.Report.LabelSets <= mostTargets || r.Report.Fusion.Unfit != "", "%s: %d label sets, %s",
			name, r.Report.LabelSets, r.Report.Fusion.Unfit)
	}
}
