package model

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// TestStartsAreJudgedByTheirCodes: projections solved for the label sets measure the
// same as projections solved for the codes of each start.
func TestStartsAreJudgedByTheirCodes(t *testing.T) {
	data := synth.Pairs(synth.Config{Items: 400, Classes: 5, Dims: []int{7}, LabelsPerItem: 2, Noise: 1.5})
	c := chooserOf(t, modalitiesOf([]int{7}), synthetic(data), Options{Bits: 24})
	if len(c.starts) != mostStarts {
		t.Fatalf("%d starts", len(c.starts))
	}
	tt := c.newTrial(setting{FeaturesRaw, MapRBF}, 60)
	c.judgeStarts(tt, .01)
	got := c.merits
	different := false
	for start, s := range c.starts {
		for row, set := range c.judge.set {
			signs(c.h[row*c.q:(row+1)*c.q], s.judge.codes[int(set)*s.judge.words:][:s.judge.words])
		}
		c.aim(tt, false)
		sum := 0.0
		first := c.starts[0]
		c.starts[0] = s
		for f := range choiceFolds {
			if !c.judgeFold(tt, f, .01, 0, 1, func(_, _ int, precision float64) { sum += precision }) {
				t.Fatal("no solution")
			}
		}
		c.starts[0] = first
		// A projection near zero may get another sign.
		if want := sum / float64(c.judge.queryCount()); !approx(got[start], want, 1e-3) {
			t.Errorf("start %d: %g, want %g", start, got[start], want)
		}
		different = different || got[start] != got[0]
	}
	if !different {
		t.Error("all starts are as good")
	}
}

// TestBestStartIsTaken: training goes on from the start with the largest merit, and
// reports it.
func TestBestStartIsTaken(t *testing.T) {
	withoutRace(t)
	dims := []int{7, 4}
	data := synthetic(synth.Pairs(synth.Config{Items: 500, Classes: 6, Dims: dims, Noise: 1.5}))
	r, err := Train(t.Context(), modalitiesOf(dims), data, Options{Bits: 16, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Report.Start
	if s == nil || len(s.MAP) != mostStarts || s.MAP[s.Chosen-1] != slices.Max(s.MAP) {
		t.Fatalf("%+v", s)
	}
	// The codes are those of a solver that begins at this start.
	tr := &trainer{opt: settled(modalitiesOf(dims), Options{Bits: 16, Seed: 3}), from: seeded(3, 16), reader: &reader{modalities: modalitiesOf(dims), src: data, items: -1}}
	if err := tr.scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	tr.from.open = make([]open, len(dims))
	tr.from.open[0].gamma = true
	if err := tr.solveStarts(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := codec.NewCode(16)
	for set, columns := range tr.sets.sets {
		var labels []uint32
		for _, l := range columns {
			labels = append(labels, tr.sets.labels[l])
		}
		if !r.Model.LabelCode(got, labels) || !slices.Equal(got, tr.solvers[s.Chosen-1].setCode(uint32(set))) {
			t.Fatalf("labels %v: code %x", labels, got)
		}
	}
	// A given start is taken, whatever else is chosen.
	for _, opt := range []Options{{Bits: 16, Seed: 3}, settled(modalitiesOf(dims), Options{Bits: 16, Seed: 3})} {
		opt.Start = s.Chosen
		again, err := Train(t.Context(), modalitiesOf(dims), data, opt)
		if err != nil {
			t.Fatal(err)
		}
		if again.Report.Start != nil || !slices.Equal(again.Model.c, r.Model.c) {
			t.Errorf("start %d given: %+v, other codes", opt.Start, again.Report.Start)
		}
		opt.Start = mostStarts + 1
		if _, err := Train(t.Context(), modalitiesOf(dims), data, opt); !errors.Is(err, ErrOption) {
			t.Errorf("start %d: %v", opt.Start, err)
		}
	}
	// With nothing to choose, the start is that of the seed.
	given, err := Train(t.Context(), modalitiesOf(dims), data, settled(modalitiesOf(dims), Options{Bits: 16, Seed: 3}))
	if err != nil {
		t.Fatal(err)
	}
	if given.Report.Start != nil {
		t.Errorf("nothing is open, and yet %+v", given.Report.Start)
	}
}

// TestNothingIsLearnedFromTheFold: vectors that tell nothing about the labels, each of
// them an anchor, retrieve no better than chance.
func TestNothingIsLearnedFromTheFold(t *testing.T) {
	src := made(400, 2, func(rng *rand.Rand, _ int) []float32 {
		x := make([]float32, 30)
		for j := range x {
			x[j] = float32(rng.NormFloat64())
		}
		return x
	})
	c := chooserOf(t, modalitiesOf([]int{30}), src, Options{Bits: 16})
	// Half of the queries find the relevant half first, the others find it last.
	chance := (1 + 1 - math.Ln2) / 2
	for _, kind := range []MapKind{MapRBF, MapLinear, MapRBFLinear} {
		for _, sets := range []bool{false, true} {
			tt := c.newTrial(setting{FeaturesRaw, kind}, 400)
			c.aim(tt, sets)
			for _, o := range c.evaluate(tt, []float64{1e-4, 1}) {
				if o.precisions == nil || !approx(o.MAP, chance, 4*o.StdErr) {
					t.Errorf("%v, gamma %g: %.3f +- %.3f, want %.3f", kind, o.Gamma, o.MAP, o.StdErr, chance)
				}
			}
		}
	}
}
