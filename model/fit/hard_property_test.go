package fit

import (
	"bytes"
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
			if slices.ContainsFunc(z, func(v float64) bool { return v-v != 0 }) {
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
