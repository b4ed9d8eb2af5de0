package fit

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/aims"
	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/rank"
	"gonum.org/v1/gonum/floats"
)

// TestStartsAreJudgedByTheirCodes: the projections solved for a basis measure the same
// as projections solved for what items teach under each start.
func TestStartsAreJudgedByTheirCodes(t *testing.T) {
	for _, aim := range []model.Aim{model.AimLabels, model.AimCodes} {
		t.Run(aim.String(), func(t *testing.T) {
			data := synth.Pairs(synth.Config{Items: 400, Classes: 5, Dims: []int{7}, LabelsPerItem: 2,
				Noise: 1.5})
			c := chooserOf(t, data, Options{Bits: 24, Aim: aim})
			stopIf(t, len(c.starts) != MostStarts, "%d starts", len(c.starts))
			const gamma, prior = .01, .25
			tt := trialOf(c, model.MapRBF, 1, 60)
			held, ok := tt.hold(c.basis.y, gamma, len(c.xs))
			stopIf(t, !ok, "no solution")
			tuned := &tuning{bench: c.bench, held: held, choice: &Choice{}}
			got := tuned.merits(c.starts, prior)
			searched := 0.0
			different := false
			for start, s := range c.starts {
				var weights []float64
				if aim == model.AimLabels {
					weights = c.basis.sets.weights(aim, prior)
				}
				taught := dense.Of(len(c.judge.set), c.q, make([]float32, len(c.judge.set)*c.q))
				g := make([]float64, c.q)
				for row, set := range c.judge.set {
					clear(g)
					if aim == model.AimLabels {
						aims.AddDirections(g, s.c, c.basis.sets.sets[c.judge.of[set]], weights)
					} else {
						aims.AddSigns(g, s.codes[int(set)*s.words:][:s.words], 1)
					}
					for j, v := range g {
						taught.Data[row*c.q+j] = float32(v)
					}
				}
				z, ok := tt.hold(taught, gamma, len(c.xs))
				stopIf(t, !ok, "no solution")
				code, sum := codec.NewCode(c.q), 0.0
				for _, row := range c.judge.queries {
					codec.PackSigns(code, z.Data[int(row)*c.q:(int(row)+1)*c.q])
					sum += c.judge.precision(0, row, code, s.codes)
				}
				// A projection near zero may get another sign.
				want := sum / float64(len(c.judge.queries))
				failIf(t, !approx(got[start], want, 1e-3), "start %d: %g, want %g", start, got[start], want)
				different = different || got[start] != got[0]
				if start < searchStarts {
					searched += got[start] / searchStarts
				}
			}
			failIf(t, !different, "all starts are as good")
			// Settings are compared by the mean of the first starts.
			if o, _ := c.evaluate(tt, c.queries, 0, gamma); !approx(o.MAP, searched, 1e-12) || o.StdErr <= 0 {
				t.Errorf("the setting is judged by %g, the mean of the starts is %g", o.MAP, searched)
			}
			// The best start and the best prior are taken.
			tr := &trainer{opt: Options{Aim: model.AimLabels}}
			if start := tr.chooseStart(c.basis.sets, []*tuning{tuned}, prior,
				len(c.starts)); start != floats.MaxIdx(got) {
				t.Errorf("start %d is taken of %v", start, got)
			}
			var found []float64
			for _, a := range priors {
				mean, _ := rank.MeanError(c.meanPrecisions(held, c.judge.queries, c.starts, a))
				found = append(found, mean)
			}
			taken := tr.choosePrior(c.basis.sets, []*tuning{tuned})
			best := priors[floats.MaxIdx(found)]
			failIf(t, taken != best, "prior %g is taken of %v", taken, found)
		})
	}
}

// TestBestStartIsTaken: training goes on from the start with the largest merit, and
// reports it.
func TestBestStartIsTaken(t *testing.T) {
	effort.Slow(t)
	effort.WithoutRace(t)
	dims := []int{7, 4}
	data := synth.Pairs(synth.Config{Items: 500, Classes: 6, Dims: dims, Noise: 1.5})
	r := trained(t, data, Options{Bits: 16, Seed: 3})
	s := r.Report.Start
	if s < 2 || s > MostStarts { // seed 3 has a better one than the first
		t.Fatalf("start %d", s)
	}
	// The codes are those of a solver that begins at this start.
	_, solved := choosersOf(t, data, settled(modalitiesOf(dims), Options{Bits: 16, Seed: 3}),
		[]open{{gamma: true}, {}})
	sets, got := solved[s-1].sets, codec.NewCode(16)
	for set, columns := range sets.sets {
		labels := sets.labelsOf(columns)
		stopIf(t, !r.Model.LabelCode(got, labels) || !slices.Equal(got, solved[s-1].setCode(uint32(set))),
			"labels %v: code %x", labels, got)
	}
	// A given start is taken, whatever else is chosen.
	for _, opt := range []Options{{Bits: 16, Seed: 3}, settled(modalitiesOf(dims),
		Options{Bits: 16, Seed: 3})} {
		opt.Start = s
		again := trained(t, data, opt)
		failIf(t, again.Report.Start != opt.Start || !slices.Equal(again.Model.Parts().C, r.Model.Parts().C),
			"start %d given: %d, or other codes", opt.Start, again.Report.Start)
		opt.Start = MostStarts + 1
		_, err := learned(t, data, opt)
		failIf(t, !errors.Is(err, model.ErrOption), "start %d: %v", opt.Start, err)
	}
	// With nothing to choose, the start is that of the seed.
	given := trained(t, data, settled(modalitiesOf(dims), Options{Bits: 16, Seed: 3}))
	failIf(t, given.Report.Start != 1, "nothing is open, and yet start %d", given.Report.Start)
}

// TestNothingIsLearnedFromTheItem: vectors that tell nothing about the labels, each of
// them an anchor, retrieve no better than chance.
func TestNothingIsLearnedFromTheItem(t *testing.T) {
	src := made(400, 2, func(rng *rand.Rand, _ int) []float32 {
		x := make([]float32, 30)
		for j := range x {
			x[j] = float32(rng.NormFloat64())
		}
		return x
	})
	// Half of the queries find the relevant half first, the others find it last.
	chance := (1 + 1 - math.Ln2) / 2
	for _, aim := range []model.Aim{model.AimLabels, model.AimCodes} {
		c := chooserOf(t, src, Options{Bits: 16, Aim: aim})
		for _, kind := range []model.MapKind{model.MapRBF, model.MapLinear, model.MapRBFLinear} {
			tt := trialOf(c, kind, 1, 400)
			for _, gamma := range []float64{1e-4, 1} {
				o, _ := c.evaluate(tt, c.queries, 0, gamma)
				failIf(t, o.precisions == nil || !approx(o.MAP, chance, 4*o.StdErr),
					"%v, %v, gamma %g: %.3f +- %.3f, want %.3f", aim, kind, o.Gamma, o.MAP, o.StdErr, chance)
			}
		}
	}
}
