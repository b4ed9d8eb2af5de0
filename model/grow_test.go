package model

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// Labels get directions of their own until there are none left; nothing that has a
// code gets another one, and the new codes are far from all.
func TestGrow(t *testing.T) {
	dims := []int{9, 6}
	data := synth.Pairs(synth.Config{Items: 300, Classes: 5, Dims: dims, LabelsPerItem: 2, Seed: 4})
	ms := modalitiesOf(dims)
	r, err := Train(t.Context(), ms, synthetic(data), settled(ms, Options{Bits: 16, Anchors: 60}))
	if err != nil {
		t.Fatal(err)
	}
	m, s := r.Model, r.Statistics
	if _, _, err := m.Grow(s, m.labels[2]); !errors.Is(err, ErrOption) {
		t.Errorf("a label that is known: %v", err)
	}
	if _, _, err := m.Grow(NewStatistics(&Model{bits: 16}), 99); !errors.Is(err, ErrMismatch) {
		t.Errorf("statistics of another model: %v", err)
	}
	before, after := codec.NewCode(16), codec.NewCode(16)
	for label := uint32(100); label > 89; label-- { // in front of each other
		next, grown, err := m.Grow(s, label)
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := m.Grow(s, label)
		if err != nil || !slices.Equal(again.c, next.c) {
			t.Errorf("growing twice gives two directions: %v", err)
		}
		for i := range data.Labels {
			m.LabelCode(before, data.Labels[i])
			next.LabelCode(after, append(slices.Clone(data.Labels[i]), label+1000))
			if !slices.Equal(before, after) {
				t.Fatalf("the code of item %d has changed", i)
			}
		}
		for a := range len(next.labels) {
			for b := range a + 1 {
				var dot float64
				for j := range 16 {
					dot += next.c[a*16+j] * next.c[b*16+j]
				}
				want := 0.0
				if a == b {
					want = 1
				}
				if !approx(dot, want, 1e-9) {
					t.Fatalf("labels %d and %d: the product of their directions is %g", next.labels[a], next.labels[b], dot)
				}
			}
		}
		if next.Fingerprint() == m.Fingerprint() {
			t.Error("the fingerprint is the same")
		}
		if refit, err := next.Refit(grown, nil); err != nil {
			t.Fatal(err)
		} else {
			sameProjections(t, "grown", refit, m, 1e-9)
		}
		b, err := next.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if read, err := Unmarshal(b); err != nil || !slices.Equal(read.Labels(), next.Labels()) {
			t.Fatalf("%v", err)
		}
		if label == 100 && len(m.labels) == 5 {
			next.LabelCode(after, []uint32{label})
			for _, l := range m.labels {
				m.LabelCode(before, []uint32{l})
				if d := codec.Distance(before, after); d < 5 {
					t.Errorf("the first new label is %d bits from label %d", d, l)
				}
			}
		}
		m, s = next, grown
	}
	if _, _, err := m.Grow(s, 7); !errors.Is(err, ErrNoDirection) {
		t.Errorf("17 labels in 16 bits: %v", err)
	}
}

// What a new label's items teach is found by queries.
func TestGrownLabelIsLearned(t *testing.T) {
	dims := []int{9, 6}
	data := synth.Pairs(synth.Config{Items: 800, Classes: 6, Dims: dims, Seed: 5})
	ms := modalitiesOf(dims)
	known, late := &synth.Data{Vectors: make([][][]float32, 2)}, []Example{}
	for i, ex := range examples(data, never) {
		switch {
		case i >= 700:
		case ex.Labels[0] == 3:
			late = append(late, ex)
		default:
			known.Labels = append(known.Labels, ex.Labels)
			for mod, x := range ex.Vectors {
				known.Vectors[mod] = append(known.Vectors[mod], x.Value)
			}
		}
	}
	r, err := Train(t.Context(), ms, synthetic(known), settled(ms, Options{Bits: 32, Anchors: 100}))
	if err != nil {
		t.Fatal(err)
	}
	m, s, err := r.Model.Grow(r.Statistics, 3)
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewOnline(m, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Learn(t.Context(), late, TeacherLabels, 0); err != nil {
		t.Fatal(err)
	}
	if m, err = o.Revision(); err != nil {
		t.Fatal(err)
	}
	db, queries := codec.NewCodes(32, 0), codec.NewCodes(32, 0)
	code, z := codec.NewCode(32), make([]float64, 32)
	e := m.NewEncoder()
	for i, labels := range data.Labels {
		if i < 700 {
			m.LabelCode(code, labels)
			db.Append(code)
			continue
		}
		if err := e.Project(z, 0, data.Vectors[0][i]); err != nil {
			t.Fatal(err)
		}
		queries.Append(codec.PackSigns(code, z))
	}
	found, err := Evaluate(t.Context(), db, data.Labels[:700], queries, data.Labels[700:], 50)
	if err != nil {
		t.Fatal(err)
	}
	if found.MAP < .9 {
		t.Errorf("mAP is %.3f", found.MAP)
	}
}

// Residual against the sum over items.
func TestResidual(t *testing.T) {
	o, rest := begun(t, 150)
	if _, err := o.Learn(t.Context(), examples(rest, never), TeacherLabels, 0); err != nil {
		t.Fatal(err)
	}
	for what, m := range map[string]*Model{"older projections": o.model, "their own": nil} {
		if m == nil {
			var err error
			if m, err = o.Revision(); err != nil {
				t.Fatal(err)
			}
		}
		only := NewStatistics(m)
		if err := only.Merge(shard(t, m, rest)); err != nil {
			t.Fatal(err)
		}
		got, err := m.Residual(only)
		if err != nil {
			t.Fatal(err)
		}
		e, z := m.NewEncoder(), make([]float64, m.Bits())
		code, h := codec.NewCode(m.Bits()), make([]float32, m.Bits())
		for mod, rows := range rest.Vectors {
			var sum float64
			n := 0
			for i, x := range rows {
				if x == nil {
					continue
				}
				if err := e.Project(z, mod, x); err != nil {
					t.Fatal(err)
				}
				m.LabelCode(code, rest.Labels[i])
				signs(h, code)
				for j, v := range z {
					sum += (float64(h[j]) - v) * (float64(h[j]) - v)
				}
				n += len(z)
			}
			if want := sum / float64(n); !(math.Abs(got[mod]-want) <= 1e-9*want) || want > .9 {
				t.Errorf("%s: residual of modality %d is %g, want %g", what, mod, got[mod], want)
			}
		}
	}
	if got, err := o.model.Residual(NewStatistics(o.model)); err != nil || !slices.Equal(got, []float64{1, 1, 1}) {
		t.Errorf("of no items: %v, %v", got, err)
	}
	if _, err := o.model.Residual(&Statistics{}); !errors.Is(err, ErrMismatch) {
		t.Errorf("statistics of another model: %v", err)
	}
}
