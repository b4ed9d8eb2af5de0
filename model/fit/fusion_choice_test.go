package fit

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/eval"
	"github.com/fddhdb/fddhdb/model/internal/rank"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// fuserOf returns a fuser with made projections. Those of modality t are the codes of
// three classes times scale[t], plus noise; every fifth item lacks modality 1.
func fuserOf(n int, scale, noise []float64) *fuser {
	const q = 16
	rng := rand.New(rand.NewPCG(3, 1))
	f := &fuser{Among: rank.Among{Bits: q, Words: 1},
		modalities: modalitiesOf(make([]int, len(scale)))}
	codes := make([]float32, 3*q)
	for i := range codes {
		codes[i] = float32(rng.IntN(2)*2 - 1)
	}
	sets := &labelSets{labels: []uint32{0, 1, 2}, sets: [][]int32{{0}, {1}, {2}}}
	var setOf []uint32
	f.z, f.has = make([][]float32, len(scale)), make([][]bool, len(scale))
	for i := range n {
		f.items = append(f.items, i)
		setOf = append(setOf, uint32(i%3))
		h := codes[i%3*q:][:q]
		f.g = append(f.g, h...)
		for t := range scale {
			f.has[t] = append(f.has[t], t != 1 || i%5 > 0)
			for _, v := range h {
				f.z[t] = append(f.z[t], float32(scale[t]*float64(v)+noise[t]*rng.NormFloat64()))
			}
		}
	}
	f.Set, _, f.Relevant = rank.RelevantSets(setOf, sets.sets, len(sets.labels))
	f.Harmonic = rank.HarmonicNumbers(n)
	return f
}

// TestFusionMeasureIsEvaluate: the measure is the result of Evaluate with one item
// taken out to query the others.
func TestFusionMeasureIsEvaluate(t *testing.T) {
	effort.LongWithRace(t)
	f := fuserOf(60, []float64{.5, .5, .1}, []float64{1, 1.5, 1})
	mean := make([]float64, f.Bits)
	for j := range mean {
		mean[j] = float64(j%5)/4 - .5
	}
	for _, how := range []rank.Fusion{{Weights: []float64{1, 1, 1}},
		{Weights: []float64{.3, 0, 1}, Mean: mean}} {
		directions := need(f.measure(t.Context(), how))(t)
		z := func(i int, t int) []float64 {
			if !f.has[t][i] {
				return nil
			}
			var z []float64
			for _, v := range f.z[t][i*f.Bits : (i+1)*f.Bits] {
				z = append(z, float64(v))
			}
			return z
		}
		found := 0
		for from := range 3 {
			for to := range 3 {
				if from == to {
					continue
				}
				sum, queries := 0.0, 0.0
				for i := range f.items {
					if !f.has[from][i] {
						continue
					}
					db, query := codec.NewCodes(f.Bits, 0), codec.NewCodes(f.Bits, 0)
					var labels [][]uint32
					code := codec.NewCode(f.Bits)
					for j := range f.items {
						if j != i && f.has[to][j] {
							dst := make([]float64, f.Bits)
							how.Fuse(dst, [][]float64{z(j, 0), z(j, 1), z(j, 2)})
							db.Append(codec.PackSigns(code, dst))
							labels = append(labels, []uint32{uint32(f.Set[j])})
						}
					}
					query.Append(codec.PackSigns(code, z(i, from)))
					e := need(eval.Evaluate(t.Context(), db, labels, query, [][]uint32{{uint32(f.Set[i])}},
						1))(t)
					sum += e.MAPTie
					queries++
				}
				name := f.modalities[from].Name + "->" + f.modalities[to].Name
				if got := directions[name]; !approx(got, sum/queries, 1e-12) {
					t.Fatalf("%v, %s: %g, want %g", how, name, got, sum/queries)
				}
				found++
			}
		}
		failIf(t, len(directions) != found, "%v: %d directions of %d", how, len(directions), found)
	}
}

// TestRegression: the weights solve the normal equations. A weight that would be
// negative is left out.
func TestRegression(t *testing.T) {
	f := fuserOf(200, []float64{.9, .3}, []float64{.5, .5})
	f.has[1] = slices.Repeat([]bool{true}, len(f.items))
	var x mat.Dense
	rows := make([]float64, 0, 2*len(f.g))
	h := mat.NewVecDense(len(f.g), nil)
	for i, v := range f.g {
		rows = append(rows, float64(f.z[0][i]), float64(f.z[1][i]))
		h.SetVec(i, float64(v))
	}
	must(t, x.Solve(mat.NewDense(len(f.g), 2, rows), h))
	w := f.regression()
	for m := range w {
		failIf(t, !approx(w[m], x.At(m, 0), 1e-9), "weight %d is %g, want %g", m, w[m], x.At(m, 0))
	}
	for i, v := range f.z[0] { // the second opposes the first, and tells nothing else
		f.z[1][i] = -v
	}
	if w := f.regression(); w != nil && (w[1] != 0 || w[0] <= 0) {
		t.Errorf("weights %v", w)
	}
	f = fuserOf(200, []float64{.9, -.5}, []float64{.5, .5})
	if w := f.regression(); w[1] != 0 || w[0] <= 0 {
		t.Errorf("weights %v where the second is against the codes", w)
	}
}

// noisy returns pairs with one modality of noise.
func noisy(items int) *synth.Data {
	d := synth.Pairs(synth.Config{Items: items, Classes: 5, Dims: []int{12, 8}, Noise: 1.2})
	rng := rand.New(rand.NewPCG(8, 9))
	for _, x := range d.Vectors[0] {
		for j := range x {
			x[j] = float32(rng.NormFloat64())
		}
	}
	return d
}

// TestNoiseIsNotFused: if one modality says nothing, codes come from the other; also if
// all settings are given.
func TestNoiseIsNotFused(t *testing.T) {
	effort.LongWithRace(t)
	modalities := modalitiesOf([]int{12, 8})
	src := synthetic(noisy(400))
	opt := settled(modalities, Options{Bits: 32})
	opt.Gamma["image"] = 1e-4 // makes the noise loud
	opt.Fusion = Fusion{}
	r := need(Train(t.Context(), modalities, src, opt))(t)
	f := r.Report.Fusion
	stopIf(t, r.Report.Choices != nil || f.Unfit != "", "%+v", f)
	if w := r.Model.Weights(); w[0] > .3*w[1] || f.Weights["image"] != w[0] || f.Weights["text"] != 1 {
		t.Errorf("weights %v, reported %+v", w, f)
	}
	failIf(t, len(f.Directions) != 2 || f.Directions["image->text"] == 0 || f.Directions["text->image"] == 0,
		"it serves %v", f.Directions)
	mean := r.Model.Parts().Mean
	failIf(t, slices.Min(mean) == 0 && slices.Max(mean) == 0, "no mean aim is subtracted")
}

func TestFusionIsNotMeasured(t *testing.T) {
	apart := synth.Pairs(synth.Config{Items: 200, Dims: []int{6, 4}})
	for i := range apart.Labels { // only 30 items have both modalities
		if i >= 30 {
			apart.Vectors[i%2][i] = nil
		}
	}
	few := synth.Pairs(synth.Config{Items: 40, Dims: []int{6, 4}})
	rare := synth.Pairs(synth.Config{Items: 200, Dims: []int{6, 4}})
	for i := range rare.Labels {
		if i >= 20 {
			rare.Vectors[1][i] = nil
		}
	}
	one := synth.Pairs(synth.Config{Items: 80, Dims: []int{6}})
	two := modalitiesOf([]int{6, 4})
	for _, c := range []struct {
		modalities []model.Modality
		data       *synth.Data
		says       string
	}{
		{two, apart, "30 sampled items have several modalities"},
		{two, few, "40 training items have modality"},
		{two, rare, "20 training items have modality"},
		{two[:1], one, ""},
	} {
		r := need(Train(t.Context(), c.modalities, synthetic(c.data), Options{Bits: 16, Anchors: 20}))(t)
		f := r.Report.Fusion
		failIf(t, !strings.Contains(f.Unfit, c.says) || f.Unfit == "" != (c.says == "") ||
			len(f.Directions) > 0, "%+v, want it to say %q", f, c.says)
		w := r.Model.Weights()
		failIf(t, slices.Min(w) != 1 || slices.Max(w) != 1 || floats.Norm(r.Model.Parts().Mean, 1) != 0,
			"%s: weights %v", c.says, w)
	}
}

// TestConstantModality: it teaches nothing, and does no harm.
func TestConstantModality(t *testing.T) {
	d := noisy(200)
	for _, x := range d.Vectors[0] {
		for j := range x {
			x[j] = 1
		}
	}
	r := trained(t, d, Options{Bits: 32})
	f := r.Report.Fusion
	failIf(t, f.Unfit != "" || f.Weights["image"] > .01 || f.Weights["text"] != 1, "%+v", f)
}
