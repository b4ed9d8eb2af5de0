package fit

import (
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
		x := make([]float32, 6)
		length := math.Exp(3 * rng.NormFloat64())
		for j := range x {
			x[j] = float32(length * (math.Cos(float64(class*7+3*j)) + .3*rng.NormFloat64()))
		}
		return x
	})
	if c, tried := train(directions, Options{}); c.FeatureMap != model.FeaturesL2 {
		t.Errorf("directions: %v of %+v", c.FeatureMap, tried)
	}
	// The columns that tell the class are small, and one useless column is large.
	scales := made(500, 4, func(rng *rand.Rand, class int) []float32 {
		x := make([]float32, 4)
		x[class%3] += .01
		for j := range x {
			x[j] += float32(.003 * rng.NormFloat64())
		}
		x[3] = float32(50 * rng.NormFloat64())
		return x
	})
	if c, tried := train(scales, Options{}); c.FeatureMap != model.FeaturesZScore {
		t.Errorf("scales: %v of %+v", c.FeatureMap, tried)
	}
	// Two classes in the corners of a square, which no plane separates.
	corners := made(500, 4, func(rng *rand.Rand, corner int) []float32 {
		return []float32{float32(corner&1)*2 - 1 + float32(.2*rng.NormFloat64()),
			float32(corner>>1)*2 - 1 + float32(.2*rng.NormFloat64())}
	})
	for i, l := range corners.Labels {
		corners.Labels[i] = []uint32{l[0]&1 ^ l[0]>>1}
	}
	if c, _ := train(corners, Options{}); c.Map != model.MapRBF || c.FeatureMap != model.FeaturesRaw {
		t.Errorf("corners: %v of %v", c.Map, c.FeatureMap)
	}
	// A chessboard of two classes: the default width sees no more than its middle.
	board := made(900, 36, func(rng *rand.Rand, square int) []float32 {
		return []float32{float32(square%6) + .7*rng.Float32(), float32(square/6) + .7*rng.Float32()}
	})
	for i, l := range board.Labels {
		board.Labels[i] = []uint32{(l[0]%6 + l[0]/6) % 2}
	}
	rbf := map[string]model.MapKind{"image": model.MapRBF}
	if c, tried := train(board, Options{Map: rbf}); c.Width != .25 {
		t.Errorf("chessboard: width %g, %+v", c.Width, tried)
	}
	_, all := train(board, Options{Map: rbf, Width: map[string]float64{"image": 2}})
	for _, tried := range all {
		failIf(t, tried.Width != 2, "given width 2, tried %+v", tried)
	}
	// Many weak columns and few anchors.
	planes := made(900, 4, func(rng *rand.Rand, class int) []float32 {
		x := make([]float32, 100)
		for j := range x {
			x[j] = float32(.35*math.Cos(float64(class*31+j*j)) + rng.NormFloat64())
		}
		return x
	})
	if c, _ := train(planes, Options{}); c.Map == model.MapRBF {
		t.Errorf("planes: %v", c.Map)
	}
	// Given settings are not compared.
	given := Options{Map: map[string]model.MapKind{"image": model.MapRBF},
		Gamma: map[string]float64{"image": .25}}
	c, all := train(directions, given)
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
	if least := 1e-5 * units[c.Map]; !higher || !lower && c.Gamma > 1.1*least || c.Gamma < .9*least {
		t.Errorf("%+v is at the edge of the grid", c)
	}
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
