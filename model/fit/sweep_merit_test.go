package fit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// TestManyLabelSets: with more label sets than can be solved for, one start can be judged
// if projections learn codes. Neither starts nor sweeps are compared then. Projections that
// learn labels are solved for these, however many sets there are.
func TestManyLabelSets(t *testing.T) {
	effort.Slow(t)
	effort.WithoutRace(t)
	src := made(700, 24, func(rng *rand.Rand, class int) []float32 {
		return []float32{float32(class),
			rng.Float32()}
	})
	rng := rand.New(rand.NewPCG(7, 8))
	for i, own := range src.labels {
		src.labels[i] = slices.Compact(
			slices.Sorted(slices.Values([]uint32{own[0], uint32(rng.IntN(24)), uint32(rng.IntN(24))})))
	}
	for _, aim := range []model.Aim{model.AimLabels, model.AimCodes} {
		r, err := Train(t.Context(), modalitiesOf([]int{2}), src, Options{Bits: 24, Anchors: 30, Aim: aim})
		if err != nil {
			t.Fatal(err)
		}
		rep := r.Report
		if rep.LabelSets <= mostTargets || rep.Choices["image"].Unfit != "" || rep.Choices["image"].MAP <= 0 {
			t.Fatalf("%d label sets, %+v", rep.LabelSets, rep.Choices["image"])
		}
		if compared := aim == model.AimLabels; (rep.Start.MAP != nil) != compared ||
			(rep.SweepMAP != nil) != compared || (rep.PriorChoice != nil) != compared {
			t.Errorf("%v: start %+v, sweeps %v, prior %+v", aim, rep.Start, rep.SweepMAP, rep.PriorChoice)
		}
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
		r, err := Train(t.Context(), modalitiesOf(dims), synthetic(data), opt)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r.Report.LabelSets <= mostTargets || r.Report.Fusion.Unfit != "" {
			t.Errorf("%s: %d label sets, %s", name, r.Report.LabelSets, r.Report.Fusion.Unfit)
		}
	}
}

// TestSweepsAreJudgedByTheirCodes: retrieval after each sweep is that of a training
// that stops there.
func TestSweepsAreJudgedByTheirCodes(t *testing.T) {
	if testing.Short() || effort.Race {
		t.Skip("seven trainings")
	}
	dims := []int{7, 4}
	data := synthetic(synth.Pairs(synth.Config{Items: 160, Classes: 12, Dims: dims, LabelsPerItem: 3,
		Noise: 1.5}))
	train := func(opt Options) Report {
		t.Helper()
		opt.Bits, opt.Seed = 16, 3
		r, err := Train(t.Context(), modalitiesOf(dims), data, opt)
		if err != nil {
			t.Fatal(err)
		}
		return r.Report
	}
	// The choice depends on the last sweep. So everything is given but the maps, which
	// keeps starts compared, and trainings with fewer sweeps count only if they choose
	// the same maps.
	given := Options{
		Features: map[string]model.FeatureKind{}, Map: map[string]model.MapKind{},
		Width: map[string]float64{}, Gamma: map[string]float64{},
		Sweeps: 4, Prior: new(float64), Centre: new(float64),
	}
	for _, m := range modalitiesOf(dims) {
		given.Features[m.Name], given.Width[m.Name], given.Gamma[m.Name] = model.FeaturesRaw, 1, .1
	}
	whole := train(given)
	if len(whole.SweepMAP) != 4 || len(whole.Objective) != 4 || whole.Start.MAP == nil {
		t.Fatalf("%v, %v", whole.SweepMAP, whole.Start)
	}
	if got, want := whole.SweepMAP[3], whole.Start.MAP[whole.Start.Chosen-1]; got != want {
		t.Errorf("after the last sweep %g, as a start %g", got, want)
	}
	different, compared := false, 0
	for sweeps := 1; sweeps < 4; sweeps++ {
		part := given
		part.Sweeps = sweeps
		r := train(part)
		same := true
		for _, m := range modalitiesOf(dims) {
			same = same && r.Chosen[m.Name].Map == whole.Chosen[m.Name].Map
		}
		if !same {
			continue
		}
		compared++
		if want := r.Start.MAP[whole.Start.Chosen-1]; math.Abs(whole.SweepMAP[sweeps-1]-want) > 1e-12 {
			t.Errorf("after sweep %d: %g, want %g", sweeps, whole.SweepMAP[sweeps-1], want)
		}
		different = different || r.Start.MAP[whole.Start.Chosen-1] != whole.SweepMAP[3]
	}
	if !different || compared == 0 {
		t.Errorf("%d compared, and all sweeps are as good", compared)
	}
	// One modality has nothing to fuse, and a given start is not compared.
	one, err := Train(t.Context(), modalitiesOf(dims[:1]),
		synthetic(synth.Pairs(synth.Config{Items: 120, Dims: dims[:1], Noise: 1})),
		Options{Bits: 16, Start: 2})
	if err != nil || len(one.Report.SweepMAP) != DefaultSweeps || one.Report.SweepMAP[0] <= 0 {
		t.Errorf("%v, %v", one.Report.SweepMAP, err)
	}
	for name, opt := range map[string]Options{
		"joint": {Method: model.MethodJoint}, "many sweeps": {Sweeps: MostStarts + 1},
		"all given": settled(modalitiesOf(dims), Options{}),
	} {
		if r := train(opt); r.SweepMAP != nil {
			t.Errorf("%s: %v", name, r.SweepMAP)
		}
	}
}
