package fit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// easy returns data of four classes that every query finds: 120 items to train with and
// 100 to query with.
func easy(change func(d *synth.Data)) (trained, held *synth.Data) {
	data := synth.Pairs(synth.Config{Items: 180, Classes: 4, Dims: []int{8, 5}, Seed: 3})
	if change != nil {
		change(data)
	}
	return data.Slice(0, 120), data.Slice(120, 180)
}

// each returns a change of the numbers of a modality: f gives those of item i, in place of v in column j.
func each(mod int, f func(i, j int, v float32) float32) func(d *synth.Data) {
	return func(d *synth.Data) {
		for i, x := range d.Vectors[mod] {
			for j, v := range x {
				x[j] = f(i, j, v)
			}
		}
	}
}

// retrieval returns the mAP of the held-out vectors of modality mod against the training
// items under the codes of their labels, and the mAP of chance.
func retrieval(t testing.TB, r *Result, mod int, trained, held *synth.Data) (got, chance float64) {
	t.Helper()
	for _, labels := range trained.Labels {
		stopIf(t, !r.Model.Knows(labels), "%v has no code", labels)
	}
	got = asked(t, r.Model, mod, held, codesOf(r.Model, trained.Labels), trained.Labels).MAPTie
	same := codec.NewCodes(r.Model.Bits(), 0) // a database in which all rows tie: chance
	for range trained.Labels {
		same.Append(codec.NewCode(r.Model.Bits()))
	}
	return got, asked(t, r.Model, mod, held, same, trained.Labels).MAPTie
}

// TestHardData: difficult parts of the data do not spoil the learnable ones.
func TestHardData(t *testing.T) {
	effort.Slow(t)
	effort.WithoutRace(t)
	for _, c := range []struct {
		name   string
		change func(d *synth.Data)
		bits   int
		learns [2]float64 // least mAP of each modality, .95 if none is given; 0: the modality tells nothing
	}{
		{name: "nothing"},
		{name: "one class has nearly all items", change: func(d *synth.Data) {
			for i := range d.Labels {
				if d.Labels[i][0] != 0 && i > 8 {
					copyItem(d, i, 0)
				}
			}
		}},
		{name: "a label on every item", change: func(d *synth.Data) {
			for i := range d.Labels {
				d.Labels[i] = append(slices.Clone(d.Labels[i]), 99)
			}
		}, learns: [2]float64{1, 1}}, // everything is relevant
		{name: "a label on one item", change: func(d *synth.Data) {
			d.Labels[5] = append(slices.Clone(d.Labels[5]), 50)
		}},
		{name: "two classes", change: func(d *synth.Data) {
			for i := range d.Labels {
				d.Labels[i] = []uint32{d.Labels[i][0] / 2}
			}
		}},
		{name: "all equal in one modality", learns: [2]float64{.95, 0},
			change: each(1, func(_, j int, _ float32) float32 { return float32(1 + j) })},
		{name: "half of the items are equal", change: func(d *synth.Data) {
			for i := 1; i < len(d.Labels); i += 2 {
				for t := range d.Vectors {
					copy(d.Vectors[t][i], d.Vectors[t][int(d.Labels[i][0])])
				}
			}
		}},
		{name: "constant columns", change: each(0, func(_, j int, v float32) float32 {
			return []float32{v, v, 1e9, v, v, 0, v, v}[j]
		})},
		{name: "zero vectors", change: each(0, func(i, _ int, v float32) float32 {
			if i%5 == 4 && i < 120 {
				return 0
			}
			return v
		})},
		{name: "huge", change: scaled(1e30)},
		{name: "tiny", change: scaled(1e-30)},
		{name: "next to nothing", change: scaled(1e-42), learns: [2]float64{.9, .9}},
		{name: "columns of different scale",
			change: each(0, func(_, j int, v float32) float32 { return v * []float32{1e-12, 1e12}[j%2] })},
		{name: "far from the origin",
			change: each(0, func(_, _ int, v float32) float32 { return v + 1e4 })},
		{name: "a modality of hardly any item", change: func(d *synth.Data) {
			clear(d.Vectors[1][21:120])
		}, learns: [2]float64{.95, .8}},
		{name: "no item complete", change: func(d *synth.Data) {
			for i := range d.Labels {
				d.Vectors[i%2][i] = nil
			}
		}},
		{name: "text nearly empty", learns: [2]float64{.95, 0},
			change: each(1, func(i, _ int, v float32) float32 {
				if i%10 != 0 {
					return 0
				}
				return v
			})},
		{name: "fewer bits", bits: 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			trained, held := easy(c.change)
			c.learns = cmp.Or(c.learns, [2]float64{.95, .95})
			for _, method := range []model.Method{model.MethodLabels, model.MethodJoint} {
				opt := Options{Bits: cmp.Or(c.bits, 64), Method: method}
				if method == model.MethodJoint { // only gamma can be chosen
					opt.Map = map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBFLinear}
					opt.Features = map[string]model.FeatureKind{"image": model.FeaturesRaw,
						"text": model.FeaturesZScore}
				}
				r := checkHard(t, trained, modalitiesOf([]int{8, 5}), opt)
				stopIf(t, r == nil, "refused")
				for m, least := range c.learns {
					if least == 0 {
						continue
					}
					got, chance := retrieval(t, r, m, trained, held)
					failIf(t, got < least, "%v, modality %d: mAP %.3f, chance is %.3f", method, m, got,
						chance)
				}
			}
		})
	}
}

func scaled(by float32) func(d *synth.Data) {
	return func(d *synth.Data) {
		for mod := range d.Vectors {
			each(mod, func(_, _ int, v float32) float32 { return v * by })(d)
		}
	}
}

func copyItem(d *synth.Data, to, from int) {
	d.Labels[to] = d.Labels[from]
	for t := range d.Vectors {
		x := slices.Clone(d.Vectors[t][from])
		for j := range x {
			x[j] += .3 * float32(math.Sin(float64(7*to+j)))
		}
		d.Vectors[t][to] = x
	}
}

// TestFewItems: two items or more make a model, and every class has its code.
func TestFewItems(t *testing.T) {
	effort.LongWithRace(t)
	for _, n := range []int{1, 2, 3, 10, 49, 50, 51} {
		for _, dims := range [][]int{{8, 5}, {1, 1}} {
			data := synth.Pairs(synth.Config{Items: n, Classes: min(n, 3), Dims: dims, Noise: .01})
			if n == 1 {
				errorIs(t, errOf(learned(t, data, Options{Bits: 16})), model.ErrOneClass)
				continue
			}
			r := checkHard(t, data, modalitiesOf(dims), Options{Bits: 16})
			stopIf(t, r == nil, "%d items are refused", n)
			for m := range dims {
				got, _ := retrieval(t, r, m, data, data)
				failIf(t, got < .9, "%d items, modality %d: mAP %.3f of the training items themselves", n, m,
					got)
			}
		}
	}
}

// TestFewItemsAClass: codes of two classes are orthogonal, so far from each other, even
// if a class has two items or another even number.
func TestFewItemsAClass(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 10} {
		least := 64
		for seed := range uint64(30) {
			data := synth.Pairs(synth.Config{Items: 2 * n, Classes: 2})
			for i := range data.Labels {
				data.Labels[i] = []uint32{uint32(i % 2)}
			}
			ms := modalitiesOf([]int{8, 5})
			r := trained(t, data, settled(ms, Options{Seed: seed}))
			a, b := codec.NewCode(64), codec.NewCode(64)
			r.Model.LabelCode(a, []uint32{0})
			r.Model.LabelCode(b, []uint32{1})
			least = min(least, codec.Distance(a, b))
		}
		if least < 12 { // 32 +- 4 at random
			t.Errorf("%d items a class: %d of 64 bits differ", n, least)
		}
	}
}

// hardCase draws a small data set with some difficulties, and options.
func hardCase(rng *rand.Rand) (*synth.Data, []model.Modality, Options) {
	pick := func(of ...int) int { return of[rng.IntN(len(of))] }
	chance := func(p float64) bool { return rng.Float64() < p }
	n := pick(2, 3, 5, 10, 20, 49, 50, 51, 60)
	c := 1 + rng.IntN(pick(2, 4, 12, 30))
	var dims []int
	for range 1 + rng.IntN(3) {
		dims = append(dims, pick(1, 2, 5, 9))
	}
	data := synth.Pairs(synth.Config{
		Items: n, Classes: c, Dims: dims, LabelsPerItem: 1 + rng.IntN(3),
		Missing: float64(pick(0, 0, 1, 5, 9)) / 10, Seed: rng.Uint64(),
	})
	if chance(.1) { // nearly all of one class
		for i := 1; i < n; i++ {
			data.Labels[i] = []uint32{7}
		}
	}
	if chance(.1) { // a label on every item
		for i, labels := range data.Labels {
			data.Labels[i] = append(slices.Clone(labels), 1000)
		}
	}
	if chance(.1) { // all sets distinct, and never a label twice
		for i := range n {
			data.Labels[i] = []uint32{uint32(i)}
		}
	}
	if chance(.1) { // equal items
		for i := n / 2; i < n; i++ {
			for t := range dims {
				data.Vectors[t][i] = data.Vectors[t][0]
			}
		}
	}
	for t, d := range dims {
		if chance(.05) {
			for i := 1 + rng.IntN(2); i < n; i++ { // almost no item has it
				data.Vectors[t][i] = nil
			}
		}
		scale := make([]float32, d)
		base := float32(1)
		if chance(.3) {
			base = []float32{1e30, 3e37, 1e-30, 1e-44, 0}[rng.IntN(5)]
		}
		for j := range scale {
			scale[j] = base
			if base == 1 && chance(.2) {
				scale[j] = []float32{1e-12, 1e12, 0}[rng.IntN(3)]
			}
		}
		shift := float32(0)
		if chance(.1) {
			shift = []float32{1e-20, 1, 1e6, 1e38}[rng.IntN(4)]
		}
		positive, zeros := chance(.3), chance(.1)
		for i, x := range data.Vectors[t] {
			if x == nil {
				continue
			}
			x = slices.Clone(x)
			for j := range x {
				if positive {
					x[j] = max(x[j], -x[j])
				}
				x[j] = x[j]*scale[j] + shift
				if zeros && rng.IntN(10) > 0 {
					x[j] = 0
				}
				x[j] = min(max(x[j], -math.MaxFloat32), math.MaxFloat32)
			}
			data.Vectors[t][i] = x
		}
	}
	opt := Options{
		Bits: pick(8, 16, 64), Seed: rng.Uint64(), LabelEmbedding: chance(.7),
		Method: model.Method(pick(0, 1, 1, 2, 3)), Map: map[string]model.MapKind{},
		Features: map[string]model.FeatureKind{},
	}
	if chance(.2) {
		opt.Anchors = 1 + rng.IntN(n)
	}
	modalities := modalitiesOf(dims)
	for _, m := range modalities {
		if chance(.5) {
			opt.Map[m.Name] = model.MapKind(rng.IntN(3))
		}
		if chance(.5) {
			opt.Features[m.Name] = model.FeatureKind(rng.IntN(int(model.FeaturesHellingerL2) + 1))
		}
	}
	return data, modalities, opt
}

// refusable reports whether the error tells what to do about data or options like
// these.
func refusable(err error) bool {
	var bits *BitsError
	var features *FeaturesError
	var modality *model.ModalityError
	var anchors *AnchorsError
	return errors.Is(err, model.ErrOneClass) || errors.Is(err, model.ErrOption) || errors.As(err, &bits) ||
		errors.As(err, &features) || errors.As(err, &modality) || errors.As(err, &anchors)
}

// checkHard trains twice and checks properties that hold for all data. It returns nil
// if the training was refused for good reason.
func checkHard(t *testing.T, data *synth.Data, modalities []model.Modality, opt Options) *Result {
	t.Helper()
	r, err := Train(t.Context(), modalities, synthetic(data), opt)
	if err != nil {
		failIf(t, !refusable(err), "%v", err)
		return nil
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	again, err := Train(t.Context(), modalities, synthetic(data), opt)
	if err != nil {
		t.Errorf("the second time: %v", err)
		return nil
	}
	failIf(t, !bytes.Equal(stored(t, r), stored(t, again)), "another number of processors gives other bytes")
	// Unmarshal refuses numbers that are not finite.
	need(model.Unmarshal(need(r.Model.MarshalBinary())(t)))(t)
	need(model.UnmarshalStatistics(need(r.Statistics.MarshalBinary())(t)))(t)
	need(json.Marshal(r.Report))(t)
	e, z := r.Model.NewEncoder(), make([]float64, opt.Bits)
	for v, mod := range modalities {
		xs := [][]float32{make([]float32, mod.Dim)}
		for _, scale := range []float32{1, -1e30, 1e38, 1e-38} {
			xs = append(xs, slices.Repeat([]float32{scale}, mod.Dim))
		}
		for _, x := range append(xs, data.Vectors[v]...) {
			if x == nil {
				continue
			}
			must(t, e.Project(z, v, x))
			if !finite(z) {
				t.Fatalf("modality %d: %g has the projection %g", v, x, z)
			}
		}
	}
	checkReportedCodes(t, data, r)
	return r
}

// checkReportedCodes checks the statements of the report about the codes of labels.
func checkReportedCodes(t *testing.T, data *synth.Data, r *Result) {
	t.Helper()
	q := r.Model.Bits()
	code := codec.NewCode(q)
	if r.Report.Method == model.MethodLabels {
		distinct := map[string]bool{}
		constant := codec.NewCode(q)
		var first codec.Code
		for _, labels := range data.Labels {
			r.Model.LabelCode(code, labels)
			distinct[string(code.AppendBytes(nil, q))] = true
			if first == nil {
				first = slices.Clone(code)
			}
			for w := range code {
				constant[w] |= code[w] ^ first[w]
			}
		}
		same := 0
		for j := range q {
			if !constant.Bit(j) {
				same++
			}
		}
		failIf(t, len(distinct) != r.Report.DistinctCodes || same != r.Report.ConstantBits,
			"%d codes, %d constant bits, but the report says %d and %d", len(distinct), same,
			r.Report.DistinctCodes, r.Report.ConstantBits)
		failIf(t, len(distinct) < 2, "one code for %d label sets", r.Report.LabelSets)
	}
}

func TestHardDataAtRandom(t *testing.T) {
	effort.Slow(t)
	effort.WithoutRace(t)
	first := seed.From(t, 0)
	for s := first; s < first+uint64(effort.Of(hardCases, 40)); s++ {
		data, modalities, opt := hardCase(rand.New(rand.NewPCG(s, 0)))
		checkHard(t, data, modalities, opt)
		stopIf(t, t.Failed(), "seed %d: %d items, %v, %+v", s, data.Items(), modalities, opt)
	}
}

const hardCases = 150

func FuzzHardData(f *testing.F) {
	f.Add(uint64(1 << 40))
	f.Fuzz(func(t *testing.T, seed uint64) {
		data, modalities, opt := hardCase(rand.New(rand.NewPCG(seed, 0)))
		checkHard(t, data, modalities, opt)
	})
}
