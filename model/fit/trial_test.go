package fit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"gonum.org/v1/gonum/mat"
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
		slices.ContainsFunc(held.Data, func(v float64) bool { return v-v != 0 }) {
		t.Error("no solution with a ridge")
	}
}
