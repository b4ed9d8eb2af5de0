package fit

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/eval"
	"github.com/fddhdb/fddhdb/model/internal/rank"
)

func TestFusionTexts(t *testing.T) {
	for _, s := range []string{"auto", "sum", "image"} {
		f, err := ParseFusion(s)
		failIf(t, err != nil || f.String() != s, "%q: %v, %v", s, f, err)
	}
	errorIs(t, errOf(ParseFusion("")), model.ErrOption)
}

func TestGivenFusions(t *testing.T) {
	src := made(60, 3, func(rng *rand.Rand, class int) []float32 {
		return []float32{float32(class),
			rng.Float32(), 1}
	})
	src.Vectors = append(src.Vectors,
		made(60, 3, func(rng *rand.Rand, class int) []float32 {
			return []float32{float32(class),
				rng.Float32()}
		}).Vectors[0])
	for _, c := range []struct {
		fusion  string
		weights []float64
	}{
		{"sum", []float64{1, 1}},
		{"text", []float64{0, 1}},
		{"image", []float64{1, 0}},
	} {
		f := need(ParseFusion(c.fusion))(t)
		r := trained(t, src, Options{Bits: 8, Fusion: f})
		want, reported := c.weights, r.Report.Fusion
		got := r.Model.Weights()
		failIf(t, !slices.Equal(got, want) || floats.Norm(r.Model.Parts().Mean, 1) != 0 ||
			reported.Weights["image"] != want[0] || reported.Weights["text"] != want[1] ||
			len(reported.Directions) > 0, "%v: weights %v, want %v; reported %+v", f, got, want, reported)
	}
	var modality *model.ModalityError
	_, err := learned(t, src, Options{Fusion: Fusion{FusionModality, "sound"}})
	failIf(t, !errors.As(err, &modality) || modality.Modality != "sound", "an unknown modality: %v", err)
	errorIs(t, errOf(learned(t, src, Options{Fusion: Fusion{Rule: 9}})),
		model.ErrOption)
}

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

// A halving is the experiment of docs/EVALUATION.md, "Unlabelled items": a random half
// of the training items trains, and the other half is the database.
type halving struct {
	result            *Result
	database, queries *synth.Data
	z, queryZ         [][][]float64 // by modality and item; nil if the item lacks the modality
}

func halve(t testing.TB, train, queries *synth.Data, opt Options) *halving {
	t.Helper()
	order := rand.New(rand.NewPCG(opt.Seed, 77)).Perm(train.Items())
	h := &halving{database: picked(train, order[len(order)/2:]), queries: queries}
	h.result = trained(t, picked(train, order[:len(order)/2]), opt)
	project := func(d *synth.Data) [][][]float64 {
		e := h.result.Model.NewEncoder()
		z := make([][][]float64, len(d.Vectors))
		for m, rows := range d.Vectors {
			z[m] = make([][]float64, len(rows))
			for i, x := range rows {
				if x == nil {
					continue
				}
				z[m][i] = make([]float64, h.result.Model.Bits())
				must(t, e.Project(z[m][i], m, x))
			}
		}
		return z
	}
	h.z, h.queryZ = project(h.database), project(queries)
	return h
}

// figures returns the mAP of each direction, in Hamming order. Items of the database
// have the codes that the trained model gives them without labels, with the given
// fusion.
func (h *halving) figures(t testing.TB, how rank.Fusion) (all []float64) {
	q := h.result.Model.Bits()
	parts := h.result.Model.Parts()
	parts.Fusion, parts.Mean = how.Weights, how.Mean
	m := need(model.New(parts))(t)
	code, z := codec.NewCode(q), make([]float64, q)
	for from := range h.z {
		for to := range h.z {
			if from == to {
				continue
			}
			db, queries := codec.NewCodes(q, 0), codec.NewCodes(q, 0)
			var labels, queryLabels [][]uint32
			for i, l := range h.database.Labels {
				parts := make([][]float64, len(h.z))
				for t := range parts {
					parts[t] = h.z[t][i]
				}
				if parts[to] != nil {
					m.Fuse(z, parts)
					db.Append(codec.PackSigns(code, z))
					labels = append(labels, l)
				}
			}
			for i, l := range h.queries.Labels {
				if x := h.queryZ[from][i]; x != nil {
					queries.Append(codec.PackSigns(code, x))
					queryLabels = append(queryLabels, l)
				}
			}
			e := need(eval.Evaluate(t.Context(), db, labels, queries, queryLabels, 50))(t)
			all = append(all, e.MAP)
		}
	}
	return all
}

// TestUnlabelledQuality pins the mAP of a database without labels. It checks that the fusion of a training is
// about as good as the plain sum, each modality alone, and all of these without the mean aim.
func TestUnlabelledQuality(t *testing.T) {
	effort.Slow(t)
	effort.WithoutRace(t)
	type set struct {
		name           string
		train, queries *synth.Data
		goal           []float64 // by direction, in the order of figures
		worse          float64   // largest distance to the best of all
	}
	of := func(name string, d *synth.Data, worse float64) set {
		n := d.Items() - 300
		return set{name: name, train: d.Slice(0, n), queries: d.Slice(n, n+300), worse: worse}
	}
	sets := []set{
		of("noise", noisy(1500), .01),
		of("pairs", synth.Pairs(synth.Config{Items: 1500, Classes: 8, Dims: []int{20, 12}, Noise: 2.5,
			LabelsPerItem: 2}), .01),
	}
	if effort.Long() || *allFigures {
		if *allFigures {
			g := need(synth.NewNUSWide(1, synth.DefaultNUSWideNoise))(t)
			sets = append(sets, of("nuswide", g.Data(0, 3000), .015))
		}
		for _, s := range []struct {
			name string
			goal []float64
		}{{"wiki", []float64{.26, .59}}, {"ucidigits", []float64{.84, .955}}} {
			t.Run(s.name, func(t *testing.T) { // skips if the data is not here
				d := readDataset(t, s.name)
				sets = append(sets, set{s.name, d.train, d.query, s.goal, .01})
			})
		}
	}
	for _, s := range sets {
		seeds := 1
		switch {
		case *allFigures && s.goal != nil:
			seeds = 5
		case *allFigures:
			seeds = 2
		}
		mean := map[string][]float64{}
		var names []string
		note := func(name string, figures []float64) {
			if mean[name] == nil {
				names, mean[name] = append(names, name), make([]float64, len(figures)+1)
			}
			for i, v := range figures {
				mean[name][i] += v / float64(seeds)
				mean[name][len(figures)] += v / float64(seeds*len(figures))
			}
		}
		for seed := range seeds {
			opt := Options{Seed: uint64(seed)}
			if !*allFigures {
				opt.Anchors = 400 // choosing takes a fraction of the time
			}
			h := halve(t, s.train, s.queries, opt)
			report := h.result.Report.Fusion
			stopIf(t, report.Unfit != "", "%v", report.Unfit)
			parts := h.result.Model.Parts()
			tried := map[string][]float64{"sum": {1, 1}, "weighted": parts.Fusion}
			for t, m := range h.result.Model.Modalities() {
				tried[m.Name] = make([]float64, len(s.train.Vectors))
				tried[m.Name][t] = 1
			}
			for _, name := range slices.Sorted(maps.Keys(tried)) {
				note(name, h.figures(t, rank.Fusion{Weights: tried[name]}))
				note(name+", less the mean",
					h.figures(t, rank.Fusion{Weights: tried[name], Mean: parts.Mean}))
			}
			note("trained", h.figures(t, rank.Fusion{Weights: parts.Fusion, Mean: parts.Mean}))
			t.Logf("%s, seed %d: %+v; %.2v s", s.name, seed, report, h.result.Report.Seconds["choose"])
		}
		chosen := mean["trained"]
		last := len(chosen) - 1
		for _, name := range names {
			t.Logf("%-10s %-22s %.3f", s.name, name, mean[name])
			failIf(t, mean[name][last] > chosen[last]+s.worse, "%s: %s gives %.3f, what was trained %.3f",
				s.name, name, mean[name], chosen)
		}
		for i, goal := range s.goal {
			if chosen[i] < goal {
				t.Errorf("%s: %.3f, the goal is %.3f", s.name, chosen[:last], s.goal)
				break
			}
		}
	}
}
