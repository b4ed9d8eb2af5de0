package fit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"gonum.org/v1/gonum/mat"
)

func unlabelled(vectors ...[][]float32) *synth.Data {
	return &synth.Data{Vectors: vectors, Labels: make([][]uint32, len(vectors[0]))}
}

// freely trains without labels, by the method that fits the modalities if there is none.
func freely(t testing.TB, opt Options, vectors ...[][]float32) *Result {
	t.Helper()
	if opt.Method == model.MethodAuto {
		opt.Method = []model.Method{model.MethodITQ, model.MethodCCAITQ}[min(len(vectors)-1, 1)]
	}
	return trained(t, unlabelled(vectors...), opt)
}

// signCode returns the code of a vector of modality m.
func signCode(t testing.TB, m *model.Model, mod int, x []float32) codec.Code {
	t.Helper()
	z := make([]float64, m.Bits())
	must(t, m.NewEncoder().Project(z, mod, x))
	return codec.PackSigns(codec.NewCode(m.Bits()), z)
}

// The rows of ITQ are orthonormal, and its codes are even.
func TestITQ(t *testing.T) {
	effort.LongWithRace(t)
	rows := synth.Embeddings(0, 6000, 128, 5)
	itq := freely(t, Options{Bits: 64}, rows)
	failIf(t, !orthonormal(mat.NewDense(64, 129, itq.Model.Parts().Projections[0])), "the rows of W are not")
	r := itq.Report
	failIf(t, r.ConstantBits > 0 || r.BitBalance > .3 || r.DistinctCodes < 2000,
		"%d constant bits, balance %.3f, %d distinct codes", r.ConstantBits, r.BitBalance, r.DistinctCodes)
}

// Longer codes find more of the nearest vectors, also those of more bits than there are dimensions, as by
// default.
func TestMoreBitsFindMore(t *testing.T) {
	effort.LongWithRace(t)
	rows := synth.Embeddings(0, 2000, 48, 3)
	last := 0.0
	for _, bits := range []int{16, 48, 0} {
		m := freely(t, Options{Bits: bits}, rows).Model
		failIf(t, bits == 0 && m.Bits() != DefaultLabelFreeBits, "%d bits by default", m.Bits())
		codes := need(itemCodes(m, func() (items [][]model.Vector) {
			for _, x := range rows {
				items = append(items, []model.Vector{model.Dense(x)})
			}
			return items
		}()))(t)
		recall := 0.
		distances := make([]uint16, len(rows))
		for q := range 100 {
			cosines := make([]float64, len(rows)) // vectors have length 1
			truth := make([]int32, len(rows))
			for i, x := range rows {
				truth[i] = int32(i)
				for j, v := range x {
					cosines[i] += float64(v) * float64(rows[q][j])
				}
			}
			slices.SortFunc(truth, func(a, b int32) int { return cmp.Compare(cosines[b], cosines[a]) })
			words := codec.Words(m.Bits())
			codec.Distances(distances, codes[q*words:(q+1)*words], codes)
			for _, place := range truth[:10] { // items at one distance come in random order
				nearer, ties := 0, 0
				for _, d := range distances {
					if d < distances[place] {
						nearer++
					} else if d == distances[place] {
						ties++
					}
				}
				recall += min(max(float64(50-nearer)/float64(ties), 0), 1) / 10
			}
		}
		if recall < last+1 { // of 100 queries
			t.Errorf("%d bits find %.1f %% in the first 50, fewer %.1f", m.Bits(), recall, last)
		}
		last = recall
	}
}

// The offset is that of the definition: 1 of equal projections, and small of items like those of the
// training.
func TestOffsetOf(t *testing.T) {
	rows := synth.Embeddings(0, 1000, 32, 5)
	m := freely(t, Options{Method: model.MethodITQ, Bits: 16}, rows[:700]).Model
	of := func(rows ...[]float32) (items []model.Example) {
		for _, x := range rows {
			items = append(items, model.Example{Vectors: []model.Vector{model.Dense(x)}})
		}
		return items
	}
	opposite := slices.Clone(rows[0])
	z := func(x []float32) []float64 {
		z := make([]float64, 16)
		must(t, m.NewEncoder().Project(z, 0, x))
		return z
	}
	for i := range opposite {
		opposite[i] = -opposite[i]
	}
	sum, squares := make([]float64, 16), 0.0
	for _, x := range [][]float32{rows[0], opposite} {
		for j, v := range z(x) {
			sum[j] += v
			squares += v * v
		}
	}
	want := 0.0
	for _, v := range sum {
		want += v * v / 2 / squares
	}
	for what, c := range map[string]struct {
		items     []model.Example
		low, high float64
	}{
		"equal":             {of(rows[1], rows[1], rows[1]), 1 - 1e-9, 1 + 1e-9},
		"opposite":          {of(rows[0], opposite), want - 1e-9, want + 1e-9},
		"like the training": {of(rows[700:]...), 0, .02},
		"none":              {append(of(), model.Example{Vectors: []model.Vector{{}}}), 0, 0},
	} {
		got, n, err := m.OffsetOf(c.items)
		failIf(t, err != nil || got[0] < c.low || got[0] > c.high || what != "none" && n[0] != len(c.items) ||
			what == "none" && n[0] != 0, "%s: %v of %v items, %v", what, got, n, err)
	}
}

// Of items in two spaces, the code by one modality is near that by the other.
func TestCCAITQ(t *testing.T) {
	effort.LongWithRace(t)
	a, b := synth.PairedEmbeddings(0, 3000, 70, 40, 1)
	for i := range a { // some items lack one of them
		if i%7 == 0 {
			a[i] = nil
		} else if i%11 == 0 {
			b[i] = nil
		}
	}
	for _, bits := range []int{16, 64, 96} { // the last are more than there are directions
		m := freely(t, Options{Bits: bits}, a, b).Model
		same, other, n := 0.0, 0.0, 0
		for i := 1; i < 1000; i++ {
			if a[i] == nil || b[i] == nil || b[i+1] == nil {
				continue
			}
			code := signCode(t, m, 0, a[i])
			same += float64(codec.Distance(code, signCode(t, m, 1, b[i])))
			other += float64(codec.Distance(code, signCode(t, m, 1, b[i+1])))
			n++
		}
		failIf(t, same > other/2,
			"%d bits: the two codes of an item are %.1f bits apart, those of two items %.1f", bits,
			same/float64(n), other/float64(n))
	}
}

// Three spaces, of which no item has all, are linked by items that have two.
func TestCCAITQOfThreeSpaces(t *testing.T) {
	effort.LongWithRace(t)
	a, b := synth.PairedEmbeddings(0, 3000, 40, 30, 1)
	c, _ := synth.PairedEmbeddings(0, 3000, 20, 30, 1)
	for i := range a {
		switch i % 3 {
		case 0:
			a[i] = nil
		case 1:
			c[i] = nil
		}
	}
	m := freely(t, Options{Bits: 32}, a, b, c).Model
	code := func(t2 int, x []float32) codec.Code { return signCode(t, m, t2, x) }
	ac, ab := 0, 0
	for i := 2; i < 900; i += 3 {
		ac += codec.Distance(code(0, a[i]), code(2, c[i]))
		ab += codec.Distance(code(0, a[i]), code(1, b[i]))
	}
	failIf(t, ac > 300*8 || ab > 300*8, "codes of an item are %.1f and %.1f bits apart, of 32",
		float64(ac)/300, float64(ab)/300)
}

// Modalities that share a space have the same W, and means of their own: so a constant offset between
// them leaves no trace in the codes.
func TestSharedSpace(t *testing.T) {
	effort.LongWithRace(t)
	a := synth.Embeddings(0, 1500, 64, 1)
	b := make([][]float32, len(a))
	rng := rand.New(rand.NewPCG(3, 4))
	for i, x := range a {
		for _, v := range x {
			b[i] = append(b[i], v+.2+.02*float32(rng.NormFloat64()))
		}
	}
	raw := map[string]model.FeatureKind{"image": model.FeaturesRaw, "text": model.FeaturesRaw}
	opt := Options{Method: model.MethodITQ, Bits: 64, Features: raw, Shared: [][]string{{"text", "image"}}}
	m := freely(t, opt, a, b).Model
	sum := 0
	for i := range 200 {
		sum += codec.Distance(signCode(t, m, 0, a[i]), signCode(t, m, 1, b[i]))
	}
	mean := float64(sum) / 200
	failIf(t, mean > 8, "the codes of an item are %.1f bits apart, of 64", mean)
	errorIs(t, errOf(groups(modalitiesOf([]int{64, 64}), [][]string{{"image", "text"}, {"text"}})),
		new(*model.ModalityError), "named twice")
	errorIs(t, errOf(groups(modalitiesOf([]int{64, 32}), [][]string{{"image", "text"}})),
		new(*model.ModalityError), "differ in dimension")
}

func TestGroups(t *testing.T) {
	mods := modalitiesOf([]int{4, 4, 4})
	for _, c := range []struct {
		shared [][]string
		want   [][]int
	}{
		{nil, [][]int{{0}, {1}, {2}}},
		{[][]string{{"image", "text", "sound"}}, [][]int{{0, 1, 2}}},
		{[][]string{{"sound", "image"}}, [][]int{{0, 2}, {1}}},
		{[][]string{{"sound", "text", "gone"}}, [][]int{{0}, {1, 2}}},
	} {
		got, err := groups(mods, c.shared)
		failIf(t, err != nil || !slices.EqualFunc(got, c.want, slices.Equal), "%v: %v, %v; want %v", c.shared,
			got, err, c.want)
	}
}

// Labels of items are ignored, and the model knows none.
func TestLabelFreeKnowsNoLabels(t *testing.T) {
	data := synth.Pairs(synth.Config{Items: 200, Dims: []int{24}})
	r := trained(t, data, Options{Method: model.MethodITQ, Bits: 32})
	without := freely(t, Options{Method: model.MethodITQ, Bits: 32}, data.Vectors[0])
	a, _ := r.Model.MarshalBinary()
	b, _ := without.Model.MarshalBinary()
	failIf(t, !bytes.Equal(a, b), "labels have changed the model")
	m := r.Model
	failIf(t, !m.LabelFree() || m.LabelCode(codec.NewCode(32), []uint32{0, 1}) || m.Knows([]uint32{0}) ||
		m.LabelAim(make([]float64, 32), []uint32{0}) || len(m.Labels()) > 0 || r.Statistics != nil,
		"the model knows labels, or there are statistics")
	errorIs(t, errOf(model.NewOnline(m, &model.Statistics{})), model.ErrMismatch)
	errorIs(t, errOf(m.MarshalRevision(m)), model.ErrMismatch)
	errorIs(t, errOf(m.UnmarshalRevision([]byte("FDHR"))), model.ErrMismatch)
	// With the settled options a training makes the same model.
	again := freely(t, r.Report.Settle(Options{}), data.Vectors[0])
	c, _ := again.Model.MarshalBinary()
	failIf(t, !bytes.Equal(a, c), "settled options make another model")
}

func TestLabelFreeOptionsThatDoNotApply(t *testing.T) {
	rows := synth.Embeddings(0, 150, 16, 1)
	x := .5
	for what, opt := range map[string]Options{
		"anchors": {Anchors: 3}, "sweeps": {Sweeps: 3}, "start": {Start: 1},
		"label embedding": {LabelEmbedding: true},
		"aim":             {Aim: model.AimCodes}, "prior": {Prior: &x}, "centre": {Centre: &x},
		"map":   {Map: map[string]model.MapKind{"image": model.MapLinear}},
		"width": {Width: map[string]float64{"image": 1}}, "gamma": {Gamma: map[string]float64{"image": 1}},
		"mu": {Mu: map[string]float64{"image": 1}}, "delta": {Delta: 1},
		"fusion": {Fusion: Fusion{Rule: FusionSum}},
		"bits":   {Bits: 12}, "cca-itq learns": {Method: model.MethodCCAITQ},
	} {
		opt.Method = cmp.Or(opt.Method, model.MethodITQ)
		_, err := learned(t, unlabelled(rows), opt)
		failIf(t, !like(err, model.ErrOption, what), "%s: %v", what, err)
	}
	_, err := learned(t, unlabelled(rows, rows), Options{Method: model.MethodITQ, Bits: 8})
	failIf(t, !like(err, model.ErrOption, "cca-itq"), "itq of two spaces: %v", err)
	_, err = learned(t, unlabelled(nil), Options{})
	failIf(t, !like(err, model.ErrNoLabels, "itq"), "without a method: %v", err)
	errorIs(t, errOf(learned(t, unlabelled([][]float32{make([]float32, 1<<15)}),
		Options{Method: model.MethodITQ})), model.ErrOption)
	errorIs(t, errOf(learned(t, unlabelled(rows), Options{Method: model.MethodITQ, MemoryBytes: 1})),
		new(*MemoryError))
}

// Input from which little or nothing can be learned.
func TestLabelFreeDegenerate(t *testing.T) {
	nan, large := float32(math.NaN()), float32(3e38)
	one := [][]float32{{1, 2, 3}}
	for name, c := range map[string]struct {
		rows [][]float32
		want error
	}{
		"one item":              {one, ErrOneVector},
		"zeros":                 {[][]float32{{0, 0, 0}, {0, 0, 0}}, ErrOneVector},
		"equal":                 {slices.Repeat(one, 200), ErrOneVector},
		"equal but for lengths": {[][]float32{{1, 1, 1}, {2, 2, 2}}, ErrOneVector},
		"nan":                   {[][]float32{{1, 2, 3}, {1, nan, 3}}, model.ErrNotFinite},
		"two":                   {[][]float32{{1, 2, 3}, {3, 2, 1}}, nil},
		"a zero":                {[][]float32{{1, 2, 3}, {0, 0, 0}, {1, 0, 0}}, nil},
		"huge": {[][]float32{{large, -large, large}, {-large, large, large},
			{large, large, -large}}, nil},
		"tiny":       {[][]float32{{1e-45, 0, 0}, {0, 1e-45, 0}, {0, 0, 1e-40}}, nil},
		"few values": {append(slices.Repeat(one, 300), []float32{3, 2, 1}), nil},
	} {
		for _, kind := range []model.FeatureKind{model.FeaturesL2, model.FeaturesRaw, model.FeaturesZScore} {
			if kind != model.FeaturesL2 && (name == "equal but for lengths" || name == "tiny") {
				continue // they differ, or are too small to differ in squares
			}
			opt := Options{Method: model.MethodITQ, Features: map[string]model.FeatureKind{"image": kind}}
			r, err := learned(t, unlabelled(c.rows), opt)
			if !errors.Is(err, c.want) {
				t.Errorf("%s, %v: %v", name, kind, err)
				continue
			}
			if err != nil {
				continue
			}
			z := make([]float64, r.Model.Bits())
			for _, x := range c.rows {
				must(t, r.Model.NewEncoder().Project(z, 0, x))
				if !finite(z) {
					t.Errorf("%s, %v: the projection of %v holds %v", name, kind, x, z)
				}
			}
		}
	}
	errorIs(t, errOf(learned(t, unlabelled([][]float32{nil, nil}), Options{Method: model.MethodITQ})),
		ErrNoItems)
	errorIs(t, errOf(learned(t, unlabelled([][]float32{}), Options{Method: model.MethodITQ})), ErrNoItems)
	a, b := synth.PairedEmbeddings(0, 300, 12, 8, 1)
	for i := range a {
		if i%2 == 0 {
			a[i] = nil
		} else {
			b[i] = nil
		}
	}
	_, err := learned(t, unlabelled(a, b), Options{Method: model.MethodCCAITQ})
	failIf(t, !like(err, ErrUnpaired, `"image" and "text"`), "items that are not paired: %v", err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	errorIs(t, errOf(Train(ctx, modalitiesOf([]int{16}),
		synthetic(unlabelled(synth.Embeddings(0, 2000, 16, 1))),
		Options{Method: model.MethodITQ})), context.Canceled)
}

func TestLabelFreeSparse(t *testing.T) {
	rows, others := synth.PairedEmbeddings(0, 300, 60, 40, 1)
	for _, x := range rows { // a bag of words: what is positive
		for j, v := range x {
			x[j] = max(v, 0)
		}
	}
	for _, opt := range []Options{{Method: model.MethodITQ}, {Method: model.MethodITQ,
		Features: map[string]model.FeatureKind{"image": model.FeaturesHellingerL2}},
		{Method: model.MethodCCAITQ}} {
		vectors := [][][]float32{rows, others}
		if opt.Method == model.MethodITQ {
			vectors = vectors[:1]
		}
		opt.Bits = 32
		mods := modalitiesOf(dimsOf(vectors...))
		mods[0].Sparse = true
		r := need(Train(t.Context(), mods, synthetic(unlabelled(vectors...)), opt))(t)
		dense, z, off := freely(t, opt, vectors...).Model, make([]float64, 32), 0
		for _, x := range rows {
			var sparse model.Vector
			sparse.Set(model.Modality{Sparse: true}, model.Dense(x))
			must(t, r.Model.NewEncoder().ProjectVectors(z, 0, []model.Vector{sparse}))
			off += codec.Distance(codec.PackSigns(codec.NewCode(32), z), signCode(t, dense, 0, x))
		}
		failIf(t, off > 5, "%+v: %d bits of 9,600 differ", opt, off)
	}
}

// A vector has the same projection alone and among others, and when the model was stored.
func TestLabelFreeProjectVectorsIsProject(t *testing.T) {
	a, b := synth.PairedEmbeddings(0, 300, 30, 20, 1)
	for _, m := range []*model.Model{freely(t, Options{Bits: 72}, a).Model,
		freely(t, Options{Bits: 16}, a, b).Model} {
		q, back := m.Bits(), need(model.Unmarshal(need(m.MarshalBinary())(t)))(t)
		all, z := make([]float64, 100*q), make([]float64, q)
		must(t, m.NewEncoder().ProjectVectors(all, 0, denseAll(a[:100])))
		for i, x := range a[:100] {
			must(t, back.NewEncoder().Project(z, 0, x))
			stopIf(t, !slices.Equal(z, all[i*q:(i+1)*q]), "%v: vector %d has two projections", m.Method(), i)
		}
	}
}
