package fit

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/aims"
	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/rank"
)

// withoutRow is the definition of trial.hold for one row: the ridge regression of the
// other rows to y, without the features that are left out, solved again and applied to the
// features of the row.
func withoutRow(t *testing.T, tt *trial, y [][]float64, row, leftOut int, gamma float64) []float64 {
	t.Helper()
	var columns []int
	for c := range tt.phi.Cols {
		if c != leftOut {
			columns = append(columns, c)
		}
	}
	k := len(columns)
	phi := func(r, c int) float64 { return float64(tt.phi.Data[r*tt.phi.Cols+columns[c]]) }
	a, b := mat.NewSymDense(k, nil), mat.NewDense(k, len(y[0]), nil)
	for i := range k {
		for j := range i + 1 {
			sum := 0.0
			for r := range y {
				if r != row {
					sum += phi(r, i) * phi(r, j)
				}
			}
			if i == j {
				sum += gamma
			}
			a.SetSym(i, j, sum)
		}
		for l := range y[0] {
			sum := 0.0
			for r := range y {
				if r != row {
					sum += y[r][l] * phi(r, i)
				}
			}
			b.Set(i, l, sum)
		}
	}
	var cholesky mat.Cholesky
	var w mat.Dense
	stopIf(t, !cholesky.Factorize(a), "row %d: not positive definite", row)
	must(t, cholesky.SolveTo(&w, b))
	v := make([]float64, len(y[0]))
	for l := range v {
		for i := range k {
			v[l] += phi(row, i) * w.At(i, l)
		}
	}
	return v
}

// TestHeldOut: what trial.hold gives a row is what a regression of all other rows gives
// it that is solved again, without the row and without the feature of which the row is
// the anchor. The projections of the chooser follow from it by C J D, or by the codes.
func TestHeldOut(t *testing.T) {
	effort.WithoutRace(t)
	for _, aim := range []struct {
		name   string
		opt    Options
		labels int
	}{
		{"labels, one an item", Options{Bits: 16}, 1},
		{"labels, several an item", Options{Bits: 16}, 3},
		{"codes", Options{Bits: 16, Aim: model.AimCodes}, 2},
	} {
		data := synth.Pairs(synth.Config{Items: 70, Classes: 6, Dims: []int{6}, LabelsPerItem: aim.labels,
			Noise: 1})
		c := chooserOf(t, data, aim.opt)
		n, q := len(c.xs), c.q
		// What each row teaches, from the labels of its item alone.
		y := make([][]float64, n)
		for row := range y {
			item := slices.IndexFunc(data.Vectors[0],
				func(x []float32) bool { return slices.Equal(x, c.xs[row].Value) })
			labels := data.Labels[item]
			if aim.opt.Aim == model.AimCodes {
				y[row] = make([]float64, c.basis.y.Cols)
				y[row][c.judge.set[row]] = 1
				continue
			}
			y[row] = make([]float64, 6)
			for _, l := range labels {
				y[row][l] = math.Round(4096/math.Sqrt(float64(len(labels)))) / 4096
			}
		}
		for _, kind := range []model.MapKind{model.MapRBF, model.MapLinear, model.MapRBFLinear} {
			for _, anchors := range []int{19, n} {
				if kind == model.MapLinear && anchors == n {
					continue
				}
				for _, gamma := range []float64{1e-3, .3} {
					name := fmt.Sprintf("%s, %v, %d anchors, gamma %g", aim.name, kind, anchors, gamma)
					tt := trialOf(c, kind, .5, anchors)
					held, ok := tt.hold(c.basis.y, gamma, len(c.xs))
					stopIf(t, !ok || held.Rows != n || held.Cols != len(y[0]), "%s: %t, %d x %d", name, ok,
						held.Rows, held.Cols)
					scale, off, left := 0.0, 0.0, 0
					for row := range n {
						own := -1
						for col := range tt.phi.Cols { // an rbf feature is 1 at its own anchor
							if kind != model.MapLinear && col < anchors &&
								tt.phi.Data[row*tt.phi.Cols+col] > 1-1e-6 {
								own = col
							}
						}
						if own >= 0 {
							left++
						}
						for l, want := range withoutRow(t, tt, y, row, own, gamma) {
							off, scale = max(off, math.Abs(held.Data[row*held.Cols+l]-want)),
								max(scale, math.Abs(want))
						}
					}
					failIf(t, !(off <= 1e-6*scale) || scale == 0, "%s: off by %g of %g", name, off, scale)
					if want := anchors; kind != model.MapLinear && left != want ||
						kind == model.MapLinear && left != 0 {
						t.Errorf("%s: %d rows are anchors", name, left)
					}
					// The chooser makes projections of it by C J D of a start, or by its codes.
					start := c.starts[2]
					z := (&tuning{bench: c.bench, held: held}).project(start, .375)
					counts := make([]float64, 6)
					for _, labels := range data.Labels {
						for _, l := range labels {
							u := math.Round(4096/math.Sqrt(float64(len(labels)))) / 4096
							counts[l] += u * u
						}
					}
					mean := 0.0
					for _, v := range counts {
						mean += v / 6
					}
					for row := range n {
						for j := range q {
							want := 0.0
							for l, v := range held.Data[row*held.Cols : (row+1)*held.Cols] {
								direction := 0.0
								if aim.opt.Aim == model.AimCodes {
									direction = float64(int(start.codes[l*start.words]>>j&1)*2 - 1)
								} else {
									direction = start.c[l*q+j] * math.Pow(mean/counts[l], .375)
								}
								want += v * direction
							}
							got := float64(z[row*q+j])
							stopIf(t, !approx(got, want, 1e-6*max(1, math.Abs(want))),
								"%s: projection %d of row %d is %g, want %g", name, j, row, got, want)
						}
					}
				}
			}
		}
	}
}

// TestHeldOutWithoutSolution: without a ridge, two equal features have no solution, and
// hold says so.
func TestHeldOutWithoutSolution(t *testing.T) {
	src := made(60, 3, func(rng *rand.Rand, class int) []float32 {
		v := float32(class) + rng.Float32()
		return []float32{v, v, rng.Float32()}
	})
	c := chooserOf(t, src, Options{Bits: 8})
	tt := trialOf(c, model.MapLinear, 1, 0)
	if _, ok := tt.hold(c.basis.y, 0, len(c.xs)); ok {
		t.Error("a singular matrix has a solution")
	}
	o, _ := c.evaluate(tt, c.queries, 0, 0)
	failIf(t, o.precisions != nil, "%+v", o.Tried)
	if held, ok := tt.hold(c.basis.y, 1e-3, len(c.xs)); !ok ||
		!finite(held.Data) {
		t.Error("no solution with a ridge")
	}
}

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
