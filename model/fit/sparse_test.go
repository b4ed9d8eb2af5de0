package fit

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/sum"
)

// vectorSource is a source over vectors of either form, by modality and item.
type vectorSource struct {
	vectors [][]model.Vector
	labels  [][]uint32
}

func (s *vectorSource) Examples(context.Context) iter.Seq2[model.Example, error] {
	return func(yield func(model.Example, error) bool) {
		ex := model.Example{Vectors: make([]model.Vector, len(s.vectors))}
		for i, labels := range s.labels {
			for t, rows := range s.vectors {
				ex.Vectors[t] = rows[i]
			}
			ex.Labels = labels
			if !yield(ex, nil) {
				return
			}
		}
	}
}

// texts returns texts of items of the shape of NUS-WIDE, in both forms.
func texts(t testing.TB, seed uint64, from, to int) (sparse, dense []model.Vector, labels [][]uint32) {
	t.Helper()
	g := need(synth.NewNUSWide(seed, synth.DefaultNUSWideNoise))(t)
	for i := from; i < to; i++ {
		sparse = append(sparse, model.Sparse(g.AppendText(nil, nil, i)))
		x := make([]float32, synth.NUSWideText)
		g.Text(x, i)
		dense = append(dense, model.Dense(x))
		labels = append(labels, g.AppendLabels(nil, i))
	}
	return sparse, dense, labels
}

// spread moves the dimensions of vectors apart, to d of them, as sparse vectors.
func spread(xs []model.Vector, d int) (wide []model.Vector) {
	for _, x := range xs {
		var index []uint32
		for _, j := range x.Index {
			index = append(index, j*uint32(d/synth.NUSWideText))
		}
		wide = append(wide, model.Sparse(index, x.Value))
	}
	return wide
}

func sparseText(d int) []model.Modality {
	return []model.Modality{{Name: "text", Dim: d, Sparse: true}}
}

func trainOn(t testing.TB, m []model.Modality, xs []model.Vector, labels [][]uint32, opt Options) *Result {
	t.Helper()
	return need(Train(t.Context(), m, &vectorSource{vectors: [][]model.Vector{xs}, labels: labels}, opt))(t)
}

// TestSparseQuality: texts declared sparse get codes as good as those declared dense,
// and almost the same.
func TestSparseQuality(t *testing.T) {
	effort.Slow(t)
	effort.WithoutRace(t)
	const queries, bits = 300, 32
	n := 600
	if *allFigures {
		n = 1500
	}
	sparse, dense, labels := texts(t, 8, 0, n+queries)
	dm := []model.Modality{{Name: "text", Dim: synth.NUSWideText}}
	for _, opt := range []Options{
		{Bits: bits, Anchors: 200}, // everything else is chosen
		settled(dm, Options{Bits: bits, Anchors: 200}),
		settled(dm, Options{Bits: bits, Anchors: 200, Features: map[string]model.FeatureKind{
			"text": model.FeaturesLog}, Map: map[string]model.MapKind{"text": model.MapRBFLinear}}),
	} {
		rs := trainOn(t, sparseText(synth.NUSWideText), sparse[:n], labels[:n], opt)
		rd := trainOn(t, dm, dense[:n], labels[:n], opt)
		cs, cd := rs.Report.Chosen["text"], rd.Report.Chosen["text"]
		failIf(t, !approx(cs.Condition, cd.Condition, 1e-3*cd.Condition), "condition %g, of dense vectors %g",
			cs.Condition, cd.Condition)
		cs.Sigma, cd.Sigma, cs.Condition, cd.Condition = 0, 0, 0, 0 // sums in another order
		failIf(t, cs != cd, "chosen %+v, of dense vectors %+v", cs, cd)
		project := func(m *model.Model, xs []model.Vector) []float64 {
			z := make([]float64, len(xs)*bits)
			must(t, m.NewEncoder().ProjectVectors(z, 0, xs))
			return z
		}
		zs, zd := project(rs.Model, sparse[n:]), project(rd.Model, dense[n:])
		flipped, worst := 0, 0.0
		for i, v := range zs {
			worst = max(worst, math.Abs(v-zd[i]))
			if (v < 0) != (zd[i] < 0) {
				flipped++
				failIf(t, math.Abs(v) > 1e-3, "a projection is %g, of dense vectors %g", v, zd[i])
			}
		}
		t.Logf("%+v: projections differ by at most %.2g, %d of %d bits", cs, worst, flipped, len(zs))
		failIf(t, worst > 1e-3 || flipped > len(zs)/10_000, "projections differ by up to %g, %d bits", worst,
			flipped)
	}
}

// TestSparseIsReproducible: one model and one projection, to the last bit, of either form of vectors, alone
// or among others, and read back.
func TestSparseIsReproducible(t *testing.T) {
	const n, d = 300, 100_000
	sparse, dense, labels := texts(t, 9, 0, n)
	sparse[5], dense[5] = model.Sparse(nil, nil), model.Dense(make([]float32, synth.NUSWideText))
	wide := spread(sparse, d) // too wide to pack
	for _, c := range []struct {
		d    int
		xs   []model.Vector
		same []model.Vector // the same vectors, in the other form where there is one
	}{{synth.NUSWideText, sparse, dense}, {d, wide, wide}} {
		m := sparseText(c.d)
		opt := Options{Bits: 16, Anchors: 100, Map: map[string]model.MapKind{"text": model.MapRBF}}
		r := trainOn(t, m, c.xs, labels, opt)
		failIf(t, !bytes.Equal(stored(t, r), stored(t, trainOn(t, m, c.same, labels, opt))),
			"%d dimensions: another model of vectors in the other form", c.d)
		b := need(r.Model.MarshalBinary())(t)
		back := need(model.Unmarshal(b))(t)
		failIf(t, back.Fingerprint() != r.Model.Fingerprint() || !slices.Equal(back.Modalities(), m),
			"%+v came back as %+v", m, back.Modalities())
		failIf(t, !bytes.Equal(need(back.MarshalBinary())(t), b), "other bytes the second time")
		all, one, other := make([]float64, n*16), make([]float64, 16), make([]float64, 16)
		must(t, r.Model.NewEncoder().ProjectVectors(all, 0, c.xs))
		e := back.NewEncoder()
		for i, x := range c.xs {
			must(t, e.ProjectVectors(one, 0, []model.Vector{x}))
			must(t, e.ProjectVectors(other, 0, c.same[i:i+1]))
			stopIf(t, !slices.Equal(one, all[i*16:(i+1)*16]) || !slices.Equal(one, other),
				"vector %d: other projections alone, or in the other form", i)
		}
	}
}

// TestSparseForDense: a dense modality takes sparse vectors.
func TestSparseForDense(t *testing.T) {
	sparse, dense, labels := texts(t, 9, 0, 300)
	m := []model.Modality{{Name: "text", Dim: synth.NUSWideText}}
	opt := settled(m, Options{Bits: 16, Anchors: 50, Features: map[string]model.FeatureKind{
		"text": model.FeaturesZScore}})
	a, b := trainOn(t, m, sparse, labels, opt), trainOn(t, m, dense, labels, opt)
	failIf(t, !bytes.Equal(stored(t, a), stored(t, b)), "another model of sparse vectors")
	x, y := make([]float32, 50), make([]float32, 50)
	e := a.Model.NewEncoder()
	err := errors.Join(e.MapVector(x, 0, sparse[0]), e.MapVector(y, 0, model.Dense(dense[0].Value)))
	failIf(t, err != nil || !slices.Equal(x, y), "other features of a sparse vector (%v)", err)
}

// TestEmptyVectorIsAVector: an item without words has the modality; an item without a
// vector does not.
func TestEmptyVectorIsAVector(t *testing.T) {
	effort.WithoutRace(t)
	sparse, _, labels := texts(t, 2, 0, 100)
	sparse[1], sparse[2], sparse[3] = model.Sparse(nil, nil), model.Sparse([]uint32{}, []float32{}),
		model.Vector{}
	r := trainOn(t, sparseText(synth.NUSWideText), sparse, labels, Options{Bits: 16, Anchors: 20})
	got := r.Report.Chosen["text"].Items
	failIf(t, got != 99 || r.Statistics.Items(0) != 99, "%d items have a text", got)
	z := make([]float64, 16)
	err := r.Model.NewEncoder().ProjectVectors(z, 0, []model.Vector{model.Sparse(nil, nil)})
	failIf(t, err != nil || slices.Max(z) == 0, "%v, %v", z, err)
	for _, c := range []struct {
		v       model.Vector
		present bool
	}{{model.Vector{}, false}, {model.Dense(nil), false}, {model.Sparse(nil, nil), true},
		{model.Dense([]float32{}), true}} {
		failIf(t, c.v.Present() != c.present, "%#v: present is %v", c.v, !c.present)
	}
}

func TestSparseRefuses(t *testing.T) {
	effort.WithoutRace(t)
	sparse, _, labels := texts(t, 2, 0, 60)
	m := sparseText(synth.NUSWideText)
	e := trainOn(t, m, sparse, labels, Options{Bits: 16, Anchors: 20}).Model.NewEncoder()
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		v    model.Vector
		is   error
		says string
	}{
		{model.Sparse([]uint32{1, 2}, []float32{1}), model.ErrMismatch, "2 indices and 1 values"},
		{model.Sparse([]uint32{4, 3}, []float32{1, 1}), model.ErrMismatch,
			"index 3 of a sparse vector follows 4"},
		{model.Sparse([]uint32{4, 4}, []float32{1, 1}), model.ErrMismatch,
			"index 4 of a sparse vector follows 4"},
		{model.Sparse([]uint32{0, 1000}, []float32{1, 1}), model.ErrMismatch,
			"index 1000, but the dimensions are 0 to 999"},
		{model.Sparse([]uint32{0, math.MaxUint32}, []float32{1, 1}), model.ErrMismatch,
			"index 4294967295, but"},
		{model.Sparse([]uint32{3, 17}, []float32{1, inf}), model.ErrNotFinite, "dimension 17 is +Inf"},
		{model.Dense(make([]float32, 5)), nil, "a vector of 5 numbers"},
		{model.Vector{}, nil, "a vector of 0 numbers"},
	} {
		err := e.ProjectVectors(make([]float64, 16), 0, []model.Vector{c.v})
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v", c.v, err)
		}
		if !c.v.Present() {
			continue
		}
		xs := slices.Clone(sparse)
		xs[7] = c.v
		_, err = Train(t.Context(), m, &vectorSource{vectors: [][]model.Vector{xs}, labels: labels},
			Options{Bits: 16})
		if err == nil || !strings.Contains(err.Error(), "training item 7: ") ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("training with %v: %v", c.v, err)
		}
	}
}

// TestSparseSampleIsBounded: the reduced sample is still a fair one.
func TestSparseSampleIsBounded(t *testing.T) {
	effort.WithoutRace(t)
	const n, long = 3000, 40_000
	m := model.Modality{Dim: long, Sparse: true}
	index := make([]uint32, long)
	for j := range index {
		index[j] = uint32(j)
	}
	late := 0
	for seed := range uint64(4) {
		s := newChoiceSample(rand.New(rand.NewPCG(seed, 1)), m)
		b := &sum.Block{At: [][]int{make([]int, 1)}, X: [][]model.Vector{make([]model.Vector, 1)}}
		for i := range n {
			b.First = i
			b.X[0][0] = model.Sparse(index, slices.Repeat([]float32{float32(i)}, long))
			s.add(b, 0)
		}
		if k := len(s.kept); 2*long*k > choiceNumbers || k < choiceNumbers/(2*long)/3 ||
			len(s.bottom.items()) != k {
			t.Errorf("%d vectors of %d numbers are kept", k, long)
		}
		items := s.bottom.items()
		for i, k := range s.kept {
			stopIf(t, k.item != items[i] || k.x.Value[0] != float32(k.item),
				"place %d: item %d is taken for %d", i, k.item, items[i])
			if k.item >= n/2 {
				late++
			}
		}
		if seed == 3 {
			kept := 4 * len(s.kept)
			share := float64(late) / float64(kept)
			failIf(t, math.Abs(share-.5) > .1, "a share of %.3f comes from the second half", share)
		}
	}
}

// ofThree returns items of three classes with these vectors.
func ofThree(rows [][]float32) *synth.Data {
	d := &synth.Data{Vectors: [][][]float32{rows}}
	for i := range rows {
		d.Labels = append(d.Labels, []uint32{uint32(i % 3)})
	}
	return d
}

// TestFeaturesAreThoseOfTraining: a model maps a vector as a model trained on the
// features does, and still does so after it was stored.
func TestFeaturesAreThoseOfTraining(t *testing.T) {
	rows := positives(60)
	for kind := range model.FeaturesHellingerL2 + 1 {
		for mk := range model.MapRBFLinear + 1 {
			r := trained(t, ofThree(rows),
				Options{Bits: 8, Features: map[string]model.FeatureKind{"image": kind},
					Map: map[string]model.MapKind{"image": mk}, Width: map[string]float64{"image": 1},
					Gamma: map[string]float64{"image": .01}})
			failIf(t, r.Model.FeatureKind(0) != kind || r.Model.Map(0) != mk || r.Report.Choices != nil,
				"%v, %v: %v, %v, %v", kind, mk, r.Model.FeatureKind(0), r.Model.Map(0), r.Report.Choices)
			done := make([][]float32, len(rows))
			f := model.NewFeatures(kind, momentsOf(rows))
			for i, x := range rows {
				done[i] = make([]float32, len(x))
				f.Apply(done[i], model.Dense(x))
			}
			of := trained(t, ofThree(done),
				Options{Bits: 8, Features: map[string]model.FeatureKind{"image": model.FeaturesRaw},
					Map: map[string]model.MapKind{"image": mk}, Width: map[string]float64{"image": 1},
					Gamma: map[string]float64{"image": .01}})
			stored := need(model.Unmarshal(need(r.Model.MarshalBinary())(t)))(t)
			for i := range rows {
				z, want, again := make([]float64, 8), make([]float64, 8), make([]float64, 8)
				must(t, errors.Join(r.Model.NewEncoder().Project(z, 0, rows[i]),
					of.Model.NewEncoder().Project(want, 0, done[i]),
					stored.NewEncoder().Project(again, 0, rows[i])))
				stopIf(t, !slices.Equal(z, want) || !slices.Equal(z, again),
					"%v, %v: %v, %v after it was stored, want %v", kind, mk, z, again, want)
			}
		}
	}
}

func TestFeaturesNeedPositiveNumbers(t *testing.T) {
	rows := positives(60)
	rows[9][1] = -.5
	data := ofThree(rows)
	for _, kind := range []model.FeatureKind{model.FeaturesHellinger, model.FeaturesLog,
		model.FeaturesHellingerL2} {
		_, err := learned(t, data, Options{Features: map[string]model.FeatureKind{"image": kind}})
		failIf(t, !like(err, model.ErrOption, "-0.5"), "%v of -0.5: %v", kind, err)
	}
	r := trained(t, data, Options{})
	for _, tried := range r.Report.Choices["image"].Tried {
		switch tried.FeatureMap {
		case model.FeaturesHellinger, model.FeaturesLog, model.FeaturesHellingerL2:
			t.Errorf("tried %+v", tried)
		}
	}
}
