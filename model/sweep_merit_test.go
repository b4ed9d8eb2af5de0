package model

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/internal/synth"
)

// TestSweepsOfManyLabelSets: projections solved for the label sets and projections
// solved for the codes of each sweep measure the same.
func TestSweepsOfManyLabelSets(t *testing.T) {
	data := synth.Pairs(synth.Config{Items: 300, Classes: 9, Dims: []int{7}, LabelsPerItem: 3, Noise: 1.5})
	c := chooserOf(t, modalitiesOf([]int{7}), synthetic(data), Options{Bits: 24})
	c.refined, c.gamma = c.newTrial(setting{FeaturesRaw, MapRBF}, 60), .01
	var sweeps []*solver
	for i := range 4 {
		set := func(set uint32) []uint64 { return c.starts[i].judge.codes[int(set):][:1] }
		s := &solver{words: 1, codes: make([]uint64, 1+slices.Max(c.setOf))}
		for row, of := range c.judge.set {
			copy(s.codes[c.setOf[row]:], set(uint32(of)))
		}
		sweeps = append(sweeps, s)
	}
	bySets, err := c.sweepMerits(t.Context(), sweeps)
	if err != nil {
		t.Fatal(err)
	}
	solved, err := c.solvedMerits(t.Context(), sweeps)
	if err != nil || len(bySets) != 4 || len(solved) != 4 || solved[0] == solved[1] {
		t.Fatalf("%v, %v, %v", bySets, solved, err)
	}
	for i := range solved {
		if !approx(bySets[i], solved[i], 1e-3) {
			t.Errorf("sweep %d: %g by label sets, %g by codes", i, bySets[i], solved[i])
		}
	}
	if many, err := c.solvedMerits(t.Context(), make([]*solver, mostSolvedSweeps+1)); many != nil || err != nil {
		t.Errorf("%v, %v", many, err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.solvedMerits(cancelled, sweeps); err == nil {
		t.Error("an interrupt is not noticed")
	}
}

// TestSweepsAreJudgedByTheirCodes: retrieval after each sweep is that of a training
// that stops there.
func TestSweepsAreJudgedByTheirCodes(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("seven trainings")
	}
	dims := []int{7, 4}
	data := synthetic(synth.Pairs(synth.Config{Items: 160, Classes: 12, Dims: dims, LabelsPerItem: 3, Noise: 1.5}))
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
		Features: map[string]FeatureKind{}, Map: map[string]MapKind{}, Gamma: map[string]float64{},
		Sweeps: 4,
	}
	for _, m := range modalitiesOf(dims) {
		given.Features[m.Name], given.Gamma[m.Name] = FeaturesRaw, .1
	}
	whole := train(given)
	if len(whole.SweepMAP) != 4 || len(whole.Objective) != 4 || whole.Start == nil {
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
	one, err := Train(t.Context(), modalitiesOf(dims[:1]), synthetic(synth.Pairs(synth.Config{Items: 120, Dims: dims[:1], Noise: 1})), Options{Bits: 16, Start: 2})
	if err != nil || len(one.Report.SweepMAP) != DefaultSweeps || one.Report.SweepMAP[0] <= 0 {
		t.Errorf("%v, %v", one.Report.SweepMAP, err)
	}
	for name, opt := range map[string]Options{
		"joint": {Method: MethodJoint}, "many sweeps": {Sweeps: mostStarts + 1}, "all given": settled(modalitiesOf(dims), Options{}),
	} {
		if r := train(opt); r.SweepMAP != nil {
			t.Errorf("%s: %v", name, r.SweepMAP)
		}
	}
}
