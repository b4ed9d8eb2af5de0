package fit

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	"github.com/fddhdb/fddhdb/model/sum"
)

// chooserOf returns the chooser of the first modality of d, with every setting open.
func chooserOf(t testing.TB, d *synth.Data, opt Options) *chooser {
	t.Helper()
	modalities := modalitiesOf(dimsOf(d.Vectors...))
	cs, _ := choosersOf(t, d, settled(modalities, opt), openSettings(opt, modalities))
	return cs[0]
}

// choosersOf returns the choosers of a training, and the solutions of its starts.
func choosersOf(t testing.TB, d *synth.Data, opt Options, undecided []open) ([]*chooser, []*solution) {
	t.Helper()
	tr := &trainer{opt: opt, from: seeded(opt.Seed, opt.Bits),
		reader: &sum.Reader{Modalities: modalitiesOf(dimsOf(d.Vectors...)), Source: synthetic(d)}}
	tr.from.open = undecided
	seen, samples := need2(tr.scan(t.Context()))(t)
	solved := need(tr.solveStarts(t.Context(), seen.sets, tr.takeStarts(seen.sets, seen.hy)))(t)
	return tr.choosers(seen, samples, solved), solved
}

// trialOf maps the sample of a chooser.
func trialOf(c *chooser, kind model.MapKind, width float64, anchors int) *trial {
	return c.newTrial(setting{model.FeaturesRaw, kind, width}, c.prepare(model.FeaturesRaw), anchors)
}

// TestJudgeIsEvaluate: the average precision of a query is that of Evaluate among all
// other rows.
func TestJudgeIsEvaluate(t *testing.T) {
	const q = 24
	data := synth.Pairs(synth.Config{Items: 150, Classes: 7, Dims: []int{6}, LabelsPerItem: 3})
	c := chooserOf(t, data, Options{Bits: q})
	// The vectors tell the item of a row of the sample.
	item := func(row int) int {
		return slices.IndexFunc(data.Vectors[0],
			func(x []float32) bool { return slices.Equal(x, c.xs[row].Value) })
	}
	start := c.starts[1]
	code := func(row int) codec.Code {
		set := int(c.judge.set[row])
		return start.codes[set*start.words : (set+1)*start.words]
	}
	failIf(t, len(c.judge.queries) != len(c.xs), "%d of %d rows are queries", len(c.judge.queries), len(c.xs))
	rng := rand.New(rand.NewPCG(1, 1))
	for _, query := range c.judge.queries {
		own := int(query)
		db, queries := codec.NewCodes(q, 0), codec.NewCodes(q, 0)
		var labels [][]uint32
		for row := range c.xs {
			if row != own {
				db.Append(code(row))
				labels = append(labels, data.Labels[item(row)])
			}
		}
		asked := codec.Code{code(own)[0] ^ rng.Uint64()&rng.Uint64()&(1<<q-1)}
		queries.Append(asked)
		want := need(eval.Evaluate(t.Context(), db, labels, queries, [][]uint32{data.Labels[item(own)]},
			10))(t)
		got := c.judge.precision(0, query, asked, start.codes)
		stopIf(t, !approx(got, want.MAPTie, 1e-12), "row %d: %g, want %g", own, got, want.MAPTie)
	}
}

// made returns items of some classes whose vectors f makes.
func made(n, classes int, f func(rng *rand.Rand, class int) []float32) *synth.Data {
	rng := rand.New(rand.NewPCG(5, 6))
	m := &synth.Data{Vectors: make([][][]float32, 1)}
	for i := range n {
		m.Vectors[0] = append(m.Vectors[0], f(rng, i%classes))
		m.Labels = append(m.Labels, []uint32{uint32(i % classes)})
	}
	return m
}

// row returns a vector of d numbers.
func row(d int, f func(j int) float64) []float32 {
	x := make([]float32, d)
	for j := range x {
		x[j] = float32(f(j))
	}
	return x
}

// A vector with a number in a column that hardly varied among the training vectors, such as a rare colour,
// still has a projection.
func TestRareColumn(t *testing.T) {
	rare := made(300, 3, func(rng *rand.Rand, class int) []float32 {
		x := row(60, func(j int) float64 { return .2 * rng.NormFloat64() })
		x[class]++
		x[59] = float32(1e-6 * rng.Float64())
		return x
	})
	m := trained(t, rare, Options{Bits: 16, Anchors: 60,
		Features: map[string]model.FeatureKind{"image": model.FeaturesZScore},
		Map:      map[string]model.MapKind{"image": model.MapRBF}}).Model
	z, few := make([]float64, 16), make([]float64, 16)
	x := make([]float32, 60)
	x[1] = 1
	must(t, m.NewEncoder().Project(few, 0, x))
	x[59] = .5
	must(t, m.NewEncoder().Project(z, 0, x))
	same := 0
	for i, v := range z {
		failIf(t, v == 0, "number %d of the projection is 0", i)
		if v > 0 == (few[i] > 0) {
			same++
		}
	}
	failIf(t, same < 12, "%d of 16 signs are those without the rare column", same)
}

// TestChooses: if data is made so that one setting helps, that setting is chosen.
func TestChooses(t *testing.T) {
	effort.LongWithRace(t)
	train := func(m *synth.Data, opt Options) (Chosen, []Tried) {
		t.Helper()
		opt.Bits, opt.Anchors = 16, 60
		r := trained(t, m, opt)
		c, ch := r.Report.Choices["image"], r.Report.Chosen["image"]
		if sigma, _ := momentsOf(m.Vectors[0]).Sigma(); ch.FeatureMap == model.FeaturesRaw &&
			ch.Map != model.MapLinear && !approx(ch.Sigma/(sigma*ch.Width), 1, 1e-6) {
			t.Errorf("sigma %g of width %g, and %g of width 1", ch.Sigma, ch.Width, sigma)
		}
		failIf(t, r.Model.Gamma(0) != ch.Gamma || r.Model.FeatureKind(0) != ch.FeatureMap ||
			r.Model.Map(0) != ch.Map, "chosen %+v, but the model has others", ch)
		if !slices.ContainsFunc(c.Tried, func(tried Tried) bool {
			return tried.FeatureMap == ch.FeatureMap && tried.Map == ch.Map && tried.Gamma == ch.Gamma &&
				(ch.Map == model.MapLinear || tried.Width == ch.Width) && tried.MAP == c.MAP
		}) {
			t.Errorf("%+v with mAP %g was not tried: %+v", ch, c.MAP, c.Tried)
		}
		return ch, c.Tried
	}
	// A class is a direction, and lengths differ by factors of thousands.
	directions := made(500, 4, func(rng *rand.Rand, class int) []float32 {
		length := math.Exp(3 * rng.NormFloat64())
		return row(6, func(j int) float64 {
			return length * (math.Cos(float64(class*7+3*j)) + .3*rng.NormFloat64())
		})
	})
	// The columns that tell the class are small, and one useless column is large.
	scales := made(500, 4, func(rng *rand.Rand, class int) []float32 {
		x := row(4, func(int) float64 { return .003 * rng.NormFloat64() })
		x[class%3] += .01
		x[3] = float32(50 * rng.NormFloat64())
		return x
	})
	// Two classes in the corners of a square, which no plane separates.
	corners := made(500, 4, func(rng *rand.Rand, corner int) []float32 {
		return row(2, func(j int) float64 { return float64(corner>>j&1)*2 - 1 + .2*rng.NormFloat64() })
	})
	for i, l := range corners.Labels {
		corners.Labels[i] = []uint32{l[0]&1 ^ l[0]>>1}
	}
	// A chessboard of two classes: the default width sees no more than its middle.
	board := made(900, 36, func(rng *rand.Rand, square int) []float32 {
		return []float32{float32(square%6) + .7*rng.Float32(), float32(square/6) + .7*rng.Float32()}
	})
	for i, l := range board.Labels {
		board.Labels[i] = []uint32{(l[0]%6 + l[0]/6) % 2}
	}
	// Many weak columns and few anchors.
	planes := made(900, 4, func(rng *rand.Rand, class int) []float32 {
		return row(100,
			func(j int) float64 { return .35*math.Cos(float64(class*31+j*j)) + rng.NormFloat64() })
	})
	rbf := map[string]model.MapKind{"image": model.MapRBF}
	for name, c := range map[string]struct {
		data  *synth.Data
		opt   Options
		right func(c Chosen) bool
	}{
		"directions": {directions, Options{},
			func(c Chosen) bool { return c.FeatureMap == model.FeaturesL2 }},
		"scales": {scales, Options{},
			func(c Chosen) bool { return c.FeatureMap == model.FeaturesZScore }},
		"corners": {corners, Options{},
			func(c Chosen) bool { return c.Map == model.MapRBF && c.FeatureMap == model.FeaturesRaw }},
		"chessboard": {board, Options{Map: rbf}, func(c Chosen) bool { return c.Width == .25 }},
		"planes":     {planes, Options{}, func(c Chosen) bool { return c.Map != model.MapRBF }},
	} {
		chosen, tried := train(c.data, c.opt)
		failIf(t, !c.right(chosen), "%s: %+v of %+v", name, chosen, tried)
	}
	_, all := train(board, Options{Map: rbf, Width: map[string]float64{"image": 2}})
	for _, tried := range all {
		failIf(t, tried.Width != 2, "given width 2, tried %+v", tried)
	}
	// Given settings are not compared.
	c, all := train(directions, Options{Map: rbf, Gamma: map[string]float64{"image": .25}})
	failIf(t, c.FeatureMap != model.FeaturesL2 || c.Gamma != .25 || c.Width != DefaultWidth && c.Width != .25,
		"given rbf and 0.25: %+v", c)
	for _, tried := range all {
		failIf(t, tried.Map != model.MapRBF || tried.Gamma != .25, "given rbf and 0.25, tried %+v", tried)
	}
	c, all = train(directions,
		Options{Features: map[string]model.FeatureKind{"image": model.FeaturesZScore}})
	failIf(t, c.FeatureMap != model.FeaturesZScore, "given zscore: %+v", c)
	// The neighbours of the best gamma are no better, unless it is the least sensible one. The
	// unit of gamma for a linear map is that of standardised vectors, 6.
	units := map[model.MapKind]float64{model.MapRBF: 1, model.MapLinear: 6, model.MapRBFLinear: 1}
	var lower, higher bool
	for _, tried := range all {
		if tried.Map == c.Map {
			lower, higher = lower || tried.Gamma < c.Gamma, higher || tried.Gamma > c.Gamma
		}
	}
	least := 1e-5 * units[c.Map]
	failIf(t, !higher || !lower && c.Gamma > 1.1*least || c.Gamma < .9*least,
		"%+v is at the edge of the grid", c)
}

func TestNothingToChooseFrom(t *testing.T) {
	effort.LongWithRace(t)
	few := made(minChoiceItems-1, 3,
		func(rng *rand.Rand, class int) []float32 { return []float32{float32(class), rng.Float32()} })
	alone := made(60, 60, func(rng *rand.Rand, class int) []float32 {
		return []float32{float32(class),
			rng.Float32()}
	})
	constant := made(60, 3, func(*rand.Rand, int) []float32 { return []float32{1, 2} })
	for _, c := range []struct {
		src   *synth.Data
		says  string
		gamma float64
	}{
		{few, "49 training items", defaultLinearGamma(sigmaOf(few))},
		{alone, "0 sampled items", defaultLinearGamma(sigmaOf(alone))},
		{constant, "all vectors are equal", DefaultGamma},
	} {
		r := trained(t, c.src, Options{Map: map[string]model.MapKind{"image": model.MapLinear}})
		choice, chosen := r.Report.Choices["image"], r.Report.Chosen["image"]
		failIf(t, !strings.Contains(choice.Unfit, c.says) || len(choice.Tried) != 0, "%+v, want it to say %q",
			choice, c.says)
		failIf(t, chosen.FeatureMap != model.FeaturesRaw || chosen.Map != model.MapLinear ||
			chosen.Gamma != c.gamma, "%s: %+v", c.says, chosen)
	}
}

func sigmaOf(m *synth.Data) float64 {
	sigma, _ := momentsOf(m.Vectors[0]).Sigma()
	return sigma
}

// TestLargeMapsAreNotTried: their cost would not be a small multiple of anything.
func TestLargeMapsAreNotTried(t *testing.T) {
	const d = choiceFeatures
	src := made(60, 3, func(rng *rand.Rand, class int) []float32 {
		x := make([]float32, d)
		x[class] = 1 + rng.Float32()
		return x
	})
	c := chooserOf(t, src, Options{Bits: 8})
	maps := c.otherMaps()
	failIf(t, len(maps) != 0, "%v", maps)
	c = chooserOf(t, src, Options{Bits: 8, Map: map[string]model.MapKind{"image": model.MapLinear}})
	why := c.unfit()
	failIf(t, !strings.Contains(why, fmt.Sprint(d+1, " features")), "%q", why)
}

func TestDefaultAnchors(t *testing.T) {
	for n, want := range map[int]int{1: 1, 799: 799, 2000: 2000, 2001: 2000, 4000: 2000, 4001: 1200,
		1 << 30: 1200} {
		got := DefaultAnchorsOf(n)
		failIf(t, got != want, "%d items: %d anchors, want %d", n, got, want)
	}
}

// TestChoiceProgress: whatever can be chosen, progress reaches its total in steps of
// one, and cancelling the context ends it after any step.
func TestChoiceProgress(t *testing.T) {
	effort.LongWithRace(t)
	two := modalitiesOf([]int{6, 4})
	plain := synthetic(synth.Pairs(synth.Config{Items: 300, Dims: []int{6, 4}}))
	twins := synth.Pairs(synth.Config{Items: 300, Dims: []int{6, 4}})
	for _, x := range twins.Vectors[0] {
		copy(x[3:], x[:3]) // a linear map needs a ridge
	}
	rare := synth.Pairs(synth.Config{Items: 300, Dims: []int{6, 4}})
	for i := range rare.Labels {
		if i >= 20 {
			rare.Vectors[1][i] = nil
		}
	}
	several := synthetic(synth.Pairs(synth.Config{Items: 300, Dims: []int{6, 4}, LabelsPerItem: 2}))
	// settings are chosen twice
	noisy := synthetic(synth.ManyLabels{Items: 300, Labels: 16, PerItem: 3, Zipf: true, Noise: 5,
		Dims: []int{6, 4}}.Make())
	noFusion := Fusion{Rule: FusionSum}
	for name, c := range map[string]struct {
		src   sum.Source
		opt   Options
		fails bool
	}{
		"all":       {src: plain},
		"no fusion": {src: plain, opt: Options{Fusion: noFusion}},
		"one given": {src: plain,
			opt: Options{Fusion: noFusion, Start: 2, Gamma: map[string]float64{"image": 1},
				Features: map[string]model.FeatureKind{"image": model.FeaturesL2},
				Map:      map[string]model.MapKind{"image": model.MapLinear}}},
		"only fused": {src: plain, opt: settledOpen(two)},
		"singular": {src: synthetic(twins), opt: Options{Gamma: map[string]float64{"image": 0},
			Map: map[string]model.MapKind{"image": model.MapLinear}}, fails: true},
		"rare":      {src: synthetic(rare)},
		"several":   {src: several},
		"no centre": {src: noisy, opt: Options{Fusion: noFusion}},
	} {
		t.Run(name, func(t *testing.T) {
			c.opt.Bits, c.opt.Anchors = 16, 20
			trials, last, all := 0, int64(0), int64(0)
			c.opt.Progress = func(phase string, done, total int64) {
				if !strings.HasPrefix(phase, "choose ") {
					return
				}
				if done < last || total < done || all > 0 && total != all {
					t.Errorf("%s: %d of %d after %d", phase, done, total, last)
				}
				trials, last, all = trials+1, done, total
			}
			r, err := Train(t.Context(), two, c.src, c.opt)
			stopIf(t, err != nil != c.fails, "%v", err)
			if name == "no centre" { // settings were chosen again, as with the centre given
				given := c.opt
				given.Centre, given.Progress = new(float64), nil
				sameResult(t, need(Train(t.Context(), two, c.src, given))(t), r)
			}
			failIf(t, trials == 0, "no trials of %d steps", all)
			for stop := 1; stop <= trials; stop += effort.Of(1, 5) {
				ctx, cancel := context.WithCancel(t.Context())
				after, heard := 0, 0
				c.opt.Progress = func(phase string, _, _ int64) {
					if ctx.Err() != nil {
						after++
					} else if strings.HasPrefix(phase, "choose ") {
						if heard++; heard == stop {
							cancel()
						}
					}
				}
				if _, err := Train(ctx, two, c.src, c.opt); !errors.Is(err, context.Canceled) {
					t.Errorf("cancelled in trial %d of %d: %v, %d more calls", stop, trials, err, after)
				}
				cancel()
			}
		})
	}
}

// settledOpen gives all settings but the fusion.
func settledOpen(modalities []model.Modality) Options {
	opt := settled(modalities, Options{})
	opt.Fusion = Fusion{}
	return opt
}

// TestNothingIsRelevantToOthers: if each item has a label of its own, there is no figure of retrieval, and
// the report does not claim that there is.
func TestNothingIsRelevantToOthers(t *testing.T) {
	effort.WithoutRace(t)
	const n = 120
	data := synth.Pairs(synth.Config{Items: n, Dims: []int{6, 4}})
	for i := range data.Labels {
		data.Labels[i] = []uint32{uint32(i)}
	}
	r := trained(t, data, Options{Bits: 128, Anchors: 20})
	f := r.Report.Fusion
	failIf(t, f.Unfit != "" || len(f.Directions) > 0, "%+v", f)
}

// TestOneQueryIsNoDirection: if only one item has a modality, there is no figure for queries by it.
func TestOneQueryIsNoDirection(t *testing.T) {
	f := fuserOf(300, []float64{1, 1}, []float64{1, 1})
	clear(f.has[0])
	f.has[0][1] = true
	d, err := f.measure(t.Context(), rank.Fusion{Weights: []float64{1, 1}})
	failIf(t, err != nil || len(d) != 1 || d["text->image"] == 0, "%v, %v", d, err)
}

// TestFusionIsMeasuredWithTheRidgeOfTheModel, even if no ridge can be chosen: that of a
// linear map has the unit of the vectors.
func TestFusionIsMeasuredWithTheRidgeOfTheModel(t *testing.T) {
	effort.WithoutRace(t)
	modalities := modalitiesOf([]int{6, 4})
	data := synth.Pairs(synth.Config{Items: 240, Dims: []int{6, 4}})
	for i := range data.Labels {
		data.Labels[i] = []uint32{uint32(i % 60)}
		if i >= 60 {
			data.Vectors[0][i] = nil // so that no two images share a label
		}
		for j := range data.Vectors[0][i] {
			data.Vectors[0][i][j] *= 1e4
		}
	}
	opt := Options{Bits: 64, Anchors: 20, Map: map[string]model.MapKind{"image": model.MapLinear}}
	r := trained(t, data, opt)
	c := r.Report.Choices["image"]
	stopIf(t, c.Unfit == "" || r.Report.Fusion.Unfit != "", "%+v, %+v", c, r.Report.Fusion)
	undecided := openSettings(opt, modalities)
	opt = need(opt.withDefaults(modalities))(t)
	cs, _ := choosersOf(t, data, opt, undecided)
	given := cs[0].given
	fused, unfit := cs[0].hold(&tuning{bench: cs[0].bench, tuned: given})
	want, ok := trialOf(cs[0], given.kind, given.width, 20).hold(cs[0].basis.y,
		r.Report.Chosen["image"].Gamma,
		len(cs[0].xs))
	stopIf(t, unfit != "" || !ok, "%s, %t", unfit, ok)
	for i, v := range want.Data {
		stopIf(t, !approx(fused.held.Data[i], v, .01),
			"projections %g, want %g with gamma as the model has it", fused.held.Data[i], v)
	}
}

// TestStartsOfEmbeddedLabels: starts could only be judged by codes that are not those
// of the model, so none is chosen.
func TestStartsOfEmbeddedLabels(t *testing.T) {
	effort.LongWithRace(t)
	data := synth.ManyLabels{Items: 400, Labels: 40}.Make()
	r := trained(t, data, Options{Bits: 16, Anchors: 40,
		LabelEmbedding: true})
	failIf(t, r.Report.Start != 1 || r.Report.Embedding == nil || r.Report.Choices["image"].Unfit != "" ||
		r.Report.Chosen["image"].Width != DefaultWidth || r.Report.Chosen["text"].Width != DefaultWidth,
		"%+v", r.Report)
}

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
		r := need(learned(t, data, opt))(t, name)
		failIf(t, r.Report.LabelSets <= mostTargets || r.Report.Fusion.Unfit != "", "%s: %d label sets, %s",
			name, r.Report.LabelSets, r.Report.Fusion.Unfit)
	}
}
