package model

import (
	"errors"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/synth"
)

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
			m.LabelCode(code, d.Labels[i])
			signs(h, code)
			if err := e.Map(phi, mod, x); err != nil {
				t.Fatal(err)
			}
			if err := s.Add(mod, 1, phi, h); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

func TestShardsMergeToTheWhole(t *testing.T) {
	dims := []int{7, 4}
	data := synth.Pairs(synth.Config{Items: 300, Classes: 5, Dims: dims, Missing: .3, LabelsPerItem: 2})
	r, err := Train(t.Context(), modalitiesOf(dims), synthetic(data), settled(modalitiesOf(dims), Options{Bits: 24, Anchors: 130}))
	if err != nil {
		t.Fatal(err)
	}
	merged := NewStatistics(r.Model)
	for _, cut := range [][2]int{{0, 20}, {20, 20}, {20, 170}, {170, 300}} {
		if err := merged.Merge(shard(t, r.Model, data.Slice(cut[0], cut[1]))); err != nil {
			t.Fatal(err)
		}
	}
	for mod := range dims {
		got, want := merged.parts[mod], r.Statistics.parts[mod]
		if got.n != want.n {
			t.Errorf("%d items, want %d", got.n, want.n)
		}
		for i := range got.k {
			for j := range i + 1 {
				if a, b := got.a[i*got.k+j], want.a[i*got.k+j]; !approx(a, b, 1e-9*math.Abs(b)) {
					t.Fatalf("A[%d,%d] is %g, want %g", i, j, a, b)
				}
			}
		}
		if e := relative(mat.NewDense(24, got.k, got.b), mat.NewDense(24, got.k, want.b)); e > 1e-9 {
			t.Errorf("B is off by %g", e)
		}
	}
	refit, err := r.Model.Refit(merged, nil)
	if err != nil {
		t.Fatal(err)
	}
	for mod := range dims {
		if e := relative(mat.NewDense(24, 130, refit.p[mod].Unpack().Data), mat.NewDense(24, 130, r.Model.p[mod].Unpack().Data)); e > 1e-9 {
			t.Errorf("P of modality %d is off by %g", mod, e)
		}
	}
}

func TestRefit(t *testing.T) {
	data := synth.Pairs(synth.Config{})
	modalities := modalitiesOf([]int{8, 5})
	r, err := Train(t.Context(), modalities, synthetic(data), settled(modalities, Options{}))
	if err != nil {
		t.Fatal(err)
	}
	before, _ := marshal(t, r)
	m, err := r.Model.Refit(r.Statistics, map[string]float64{"text": 3})
	if err != nil {
		t.Fatal(err)
	}
	if m.Gamma(0) != DefaultGamma || m.Gamma(1) != 3 || m.Fingerprint() != r.Model.Fingerprint() {
		t.Errorf("gamma %g, %g", m.Gamma(0), m.Gamma(1))
	}
	direct, err := Train(t.Context(), modalities, synthetic(data), settled(modalities, Options{Gamma: map[string]float64{"text": 3}}))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := marshal(t, &Result{Model: m, Statistics: r.Statistics})
	b, _ := marshal(t, direct)
	if string(a) != string(b) {
		t.Error("a refit differs from training with that gamma")
	}
	if after, _ := marshal(t, r); string(after) != string(before) {
		t.Error("the refit changed the model")
	}
	var modality *ModalityError
	if _, err := m.Refit(r.Statistics, map[string]float64{"sound": 1}); !errors.As(err, &modality) {
		t.Error(err)
	}
	if _, err := m.Refit(r.Statistics, map[string]float64{"text": math.NaN()}); !errors.Is(err, ErrOption) {
		t.Error(err)
	}
}

func TestStatisticsRefuse(t *testing.T) {
	data := synth.Pairs(synth.Config{})
	train := func(seed uint64) *Result {
		r, err := Train(t.Context(), modalitiesOf([]int{8, 5}), synthetic(data), Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a, b := train(1), train(2)
	if err := a.Statistics.Merge(b.Statistics); !errors.Is(err, ErrMismatch) {
		t.Errorf("statistics of another model: %v", err)
	}
	if _, err := a.Model.Refit(b.Statistics, nil); !errors.Is(err, ErrMismatch) {
		t.Errorf("refit with those of another model: %v", err)
	}
	s := a.Statistics
	k := a.Model.Features(0)
	for _, err := range []error{
		s.Add(-1, 1, make([]float32, k), make([]float32, 64)),
		s.Add(2, 1, make([]float32, k), make([]float32, 64)),
		s.Add(0, -1, nil, nil),
		s.Add(0, 2, make([]float32, k), make([]float32, 128)),
		s.Add(0, 1, make([]float32, k), make([]float32, 63)),
	} {
		if !errors.Is(err, ErrMismatch) {
			t.Error(err)
		}
	}
	if _, err := s.Solve(5, 1); !errors.Is(err, ErrMismatch) {
		t.Error(err)
	}
	var singular *SingularError
	if _, err := NewStatistics(a.Model).Solve(0, 0); !errors.As(err, &singular) {
		t.Error(err)
	}
	c := s.Clone()
	if err := c.Merge(s); err != nil || c.Items(0) != 2*s.Items(0) {
		t.Errorf("a clone merged with its original: %v, %d items", err, c.Items(0))
	}
}

// The trace is the sum of the squared lengths of all features.
func TestTraceIsTheSumOfSquaredLengths(t *testing.T) {
	dims := []int{7, 4}
	data := synth.Pairs(synth.Config{Items: 90, Classes: 3, Dims: dims, Missing: .3})
	r, err := Train(t.Context(), modalitiesOf(dims), synthetic(data), settled(modalitiesOf(dims), Options{Bits: 16, Anchors: 20}))
	if err != nil {
		t.Fatal(err)
	}
	for mod, rows := range data.Vectors {
		phi, want := make([]float32, r.Model.Features(mod)), 0.0
		for _, x := range rows {
			if x == nil {
				continue
			}
			if err := r.Model.NewEncoder().Map(phi, mod, x); err != nil {
				t.Fatal(err)
			}
			for _, v := range phi {
				want += float64(v) * float64(v)
			}
		}
		if got := r.Statistics.Trace(mod); want == 0 || !approx(got, want, 1e-9*want) {
			t.Errorf("modality %d: %g, not %g", mod, got, want)
		}
	}
}
