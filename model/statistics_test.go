package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/internal/aims"
	"github.com/fddhdb/fddhdb/model/internal/dense"
	"gonum.org/v1/gonum/mat"
)

// TestConditionAgainstInverse: the estimate is a lower bound of the exact condition
// number in the 1-norm, and not far below it. So it is within a factor of k of the
// condition number of the singular values.
func TestConditionAgainstInverse(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		k := 1 + rng.IntN(30)
		rank := 1 + rng.IntN(k)
		gamma := math.Pow(10, -8*rng.Float64())
		x := mat.NewDense(rank, k, nil)
		for i := range rank {
			for j := range k {
				x.Set(i, j, rng.NormFloat64()*math.Pow(10, 2*rng.Float64()))
			}
		}
		var a, inverse mat.Dense
		a.Mul(x.T(), x)
		for i := range k {
			a.Set(i, i, a.At(i, i)+gamma)
		}
		l := dense.Of(k, k, slices.Clone(a.RawMatrix().Data))
		norm := gramNorm(l)
		if got := mat.Norm(&a, 1); !approx(norm, got, 1e-12*got) {
			t.Fatalf("norm %g, want %g", norm, got)
		}
		if !dense.Cholesky(l, 1) {
			continue // the condition is beyond float64
		}
		if err := inverse.Inverse(&a); err != nil {
			continue
		}
		exact := norm * mat.Norm(&inverse, 1)
		if exact > 1e12 {
			continue // the oracle itself is not good enough here
		}
		got := norm * inverseNorm(l, 2)
		failIf(t, got > exact*1.001 || got < exact/4, "k %d, rank %d, gamma %g: %g, exact %g", k, rank, gamma,
			got, exact)
		var svd mat.SVD
		svd.Factorize(&a, mat.SVDNone)
		if two := svd.Cond(); got > two*float64(k)*1.001 || got < two/float64(k)/4 {
			t.Errorf("k %d: %g, by singular values %g", k, got, two)
		}
	}
}

// addRow adds one row of features to modality mod of s, with the label vector y or the
// code h that it teaches; nil for neither.
func addRow(s *Statistics, mod int, phi, y, h []float32) {
	x := teaching{y: make([]float32, s.labels), h: make([]float32, s.bits)}
	copy(x.y, y)
	copy(x.h, h)
	s.add(mod, dense.Of(1, len(phi), phi), x, 1)
}

// labelVector is the definition of what an item with these labels teaches with AimLabels:
// a vector of length 1, as far as its numbers are multiples of 1/4096.
func labelVector(m *Model, labels []uint32) []float32 {
	y, known := make([]float32, len(m.labels)), 0.0
	for _, l := range labels {
		if slices.Contains(m.labels, l) {
			known++
		}
	}
	for _, l := range labels {
		if at := slices.Index(m.labels, l); at >= 0 {
			y[at] = float32(math.Round(4096/math.Sqrt(known)) / 4096)
		}
	}
	return y
}

// shard returns the statistics of some items of d under m's labels.
func shard(t testing.TB, m *Model, d *synth.Data) *Statistics {
	t.Helper()
	s, e := NewStatistics(m), m.NewEncoder()
	code := codec.NewCode(m.Bits())
	for mod, rows := range d.Vectors {
		for i, x := range rows {
			if x == nil {
				continue
			}
			phi, h := make([]float32, m.Features(mod)), make([]float32, m.Bits())
			must(t, e.MapVector(phi, mod, Dense(x)))
			if m.Aim() == AimLabels {
				addRow(s, mod, phi, labelVector(m, d.Labels[i]), nil)
				continue
			}
			m.LabelCode(code, d.Labels[i])
			aims.Signs(h, code)
			addRow(s, mod, phi, nil, h)
		}
	}
	return s
}

func TestShardsMergeToTheWhole(t *testing.T) {
	dims := []int{7, 4}
	data := synth.Pairs(synth.Config{Items: 300, Classes: 5, Dims: dims, Missing: .3, LabelsPerItem: 2})
	for _, aim := range []Aim{AimLabels, AimCodes} {
		r := trained(t, data, settled(modalitiesOf(dims), Options{Bits: 24, Anchors: 130, Aim: aim}))
		merged := NewStatistics(r.Model)
		for _, cut := range [][2]int{{0, 20}, {20, 20}, {20, 170}, {170, 300}} {
			must(t, merged.Merge(shard(t, r.Model, data.Slice(cut[0], cut[1]))))
		}
		sameStatistics(t, aim.String(), merged, r.Statistics)
		refit, _ := need2(r.Model.Refit(merged, nil))(t)
		sameProjections(t, aim.String(), refit, r.Model, 1e-9)
	}
}

// TestSame: sums of the same items in another order are the same; those of one item more,
// or of one item that taught something else, are not.
func TestSame(t *testing.T) {
	for _, aim := range []Aim{AimLabels, AimCodes} {
		o, rest := begunAt(t, 150, aim)
		m := o.model
		other := rest.Slice(0, 100)
		s := shard(t, m, other)
		reversed := *other
		reversed.Labels = slices.Clone(other.Labels)
		slices.Reverse(reversed.Labels)
		reversed.Vectors = nil
		for _, rows := range other.Vectors {
			rows = slices.Clone(rows)
			slices.Reverse(rows)
			reversed.Vectors = append(reversed.Vectors, rows)
		}
		fine(t, s.Same(shard(t, m, &reversed), 1e-12), aim, "in another order")
		for i, x := range reversed.Vectors[0] {
			if x == nil {
				continue
			}
			reversed.Labels[i] = []uint32{(reversed.Labels[i][0] + 1) % 6}
			break
		}
		taught := s.Clone()
		addRow(taught, 1, make([]float32, s.parts[1].k), nil, slices.Repeat([]float32{1}, s.bits))
		stranger, _ := begunAt(t, 140, aim)
		for what, different := range map[string]*Statistics{
			"other labels": shard(t, m, &reversed), "fewer items": shard(t, m, rest.Slice(0, 99)),
			"another teacher": taught, "another model": stranger.stats,
		} {
			err := s.Same(different, 1e-9)
			failIf(t, !like(err, ErrMismatch), "%v: %s: %v", aim, what, err)
		}
	}
}

// Statistics tell items that projections have taught from labelled ones. They can be
// taken out again, but not more of them than there are.
func TestSubtract(t *testing.T) {
	o, rest := begun(t, 150)
	s := shard(t, o.model, rest.Slice(0, 50))
	before := s.Clone()
	k, h := s.parts[0].k, slices.Repeat([]float32{1, -1}, s.bits/2)
	phi := slices.Repeat([]float32{.25}, k)
	code := teaching{y: make([]float32, s.labels), h: h}
	labels := teaching{y: labelVector(o.model, []uint32{2}), h: make([]float32, s.bits)}
	addRow(s, 0, phi, nil, h)
	p := s.parts[0]
	failIf(t, p.unlabelled != 1 || p.n != before.parts[0].n+1 || !slices.Equal(p.b, before.parts[0].b) ||
		p.taught[k] != -.25, "%d items without labels of %d", p.unlabelled, p.n)
	must(t, s.subtract(0, dense.Of(1, k, phi), code, 1))
	sameStatistics(t, "subtracted", s, before)
	errorIs(t, s.subtract(0, dense.Of(1, k, phi), code, 1), ErrMismatch)
	errorIs(t, NewStatistics(o.model).subtract(0, dense.Of(1, k, phi), labels, 1), ErrMismatch)
	sameStatistics(t, "refused", s, before)
}

func TestRefit(t *testing.T) {
	data := synth.Pairs(synth.Config{})
	modalities := modalitiesOf([]int{8, 5})
	r := trained(t, data, settled(modalities, Options{}))
	before, _ := marshal(t, r)
	m, _ := need2(r.Model.Refit(r.Statistics, map[string]float64{"text": 3}))(t)
	failIf(t, m.Gamma(0) != 1e-2 || m.Gamma(1) != 3 || m.Fingerprint() != r.Model.Fingerprint(),
		"gamma %g, %g", m.Gamma(0), m.Gamma(1))
	direct := trained(t, data, settled(modalities, Options{Gamma: map[string]float64{"text": 3}}))
	a, _ := marshal(t, &Result{Model: m, Statistics: r.Statistics})
	b, _ := marshal(t, direct)
	failIf(t, string(a) != string(b), "a refit differs from training with that gamma")
	after, _ := marshal(t, r)
	failIf(t, string(after) != string(before), "the refit changed the model")
	errorIs(t, third(m.Refit(r.Statistics, map[string]float64{"sound": 1})), new(*ModalityError))
	errorIs(t, third(m.Refit(r.Statistics, map[string]float64{"text": math.NaN()})), ErrOption)
}

func TestStatisticsRefuse(t *testing.T) {
	data := synth.Pairs(synth.Config{})
	a, b := trained(t, data, Options{Seed: 1}), trained(t, data, Options{Seed: 2})
	errorIs(t, a.Statistics.Merge(b.Statistics), ErrMismatch)
	errorIs(t, third(a.Model.Refit(b.Statistics, nil)), ErrMismatch)
	s := a.Statistics
	errorIs(t, third(s.solve(0, -1)), ErrOption)
	errorIs(t, third(NewStatistics(a.Model).solve(0, 0)), new(*SingularError))
	errorIs(t, third(a.Model.Refit(NewStatistics(a.Model), map[string]float64{"image": 0})),
		new(*SingularError))
	c := s.Clone()
	must(t, c.Merge(s))
	failIf(t, c.Items(0) != 2*s.Items(0), "a clone merged with its original has %d items", c.Items(0))
}

// The trace is the sum of the squared lengths of all features.
func TestTraceIsTheSumOfSquaredLengths(t *testing.T) {
	dims := []int{7, 4}
	data := synth.Pairs(synth.Config{Items: 90, Classes: 3, Dims: dims, Missing: .3})
	r := trained(t, data, settled(modalitiesOf(dims), Options{Bits: 16, Anchors: 20}))
	for mod, rows := range data.Vectors {
		phi, want := make([]float32, r.Model.Features(mod)), 0.0
		for _, x := range rows {
			if x == nil {
				continue
			}
			must(t, r.Model.NewEncoder().MapVector(phi, mod, Dense(x)))
			for _, v := range phi {
				want += float64(v) * float64(v)
			}
		}
		got := r.Statistics.Trace(mod)
		failIf(t, want == 0 || !approx(got, want, 1e-9*want), "modality %d: %g, not %g", mod, got, want)
	}
}
