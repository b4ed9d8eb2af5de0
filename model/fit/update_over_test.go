package fit

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
)

// An update over items elsewhere is the online step with the same ones: those of the training as they are
// now, and those that have come since.
func TestUpdateOver(t *testing.T) {
	effort.Slow(t)
	for name, opt := range map[string]Options{
		"labels": {Bits: 24, Anchors: 30, Seed: 3}, "embedding": {Bits: 16, Anchors: 20,
			LabelEmbedding: true}, "codes": {Bits: 24, Anchors: 20, Aim: model.AimCodes},
	} {
		ms, all := madeItems(1500, 12, true)
		first, later := all[:900], all[900:]
		trained, err := Train(t.Context(), ms, inMemory(first), opt)
		if err != nil {
			t.Fatal(name, err)
		}
		o, err := model.NewOnline(trained.Model, trained.Statistics.Clone())
		if err != nil {
			t.Fatal(name, err)
		}
		taught, err := o.Learn(t.Context(), later, model.TeacherLabels, 0)
		if err != nil {
			t.Fatal(name, err)
		}
		gone := later[:200]
		if err := o.Forget(t.Context(), gone, taught.Lessons[:200]); err != nil {
			t.Fatal(name, err)
		}
		want, err := o.Revision()
		if err != nil {
			t.Fatal(name, err)
		}
		now := slices.DeleteFunc(slices.Concat(first, later[200:]),
			func(ex model.Example) bool { return !trained.Model.Knows(ex.Labels) })
		e := &scattered{items: now, cuts: []int{1, 400, 777}, rng: rand.New(rand.NewPCG(1, 1))}
		got, s, err := UpdateOver(t.Context(), trained.Model, e)
		if err != nil {
			t.Fatal(name, err)
		}
		if err := s.Same(o.Statistics(), 1e-9); err != nil {
			t.Error(name, err)
		}
		if grown, err := got.GrownSince(trained.Model); err != nil || len(grown) > 0 {
			t.Error(name, grown, err)
		}
		g, w := got.NewEncoder(), want.NewEncoder()
		z, codes := make([]float64, opt.Bits), [2]codec.Code{codec.NewCode(opt.Bits), codec.NewCode(opt.Bits)}
		for _, ex := range all {
			for m, x := range ex.Vectors {
				if !x.Present() {
					continue
				}
				for i, e := range []*model.Encoder{g, w} {
					if err := e.ProjectVectors(z, m, []model.Vector{x}); err != nil {
						t.Fatal(err)
					}
					codec.PackSigns(codes[i], z)
				}
				if !slices.Equal(codes[0], codes[1]) {
					t.Fatal(name, "an item has another code")
				}
			}
		}
	}
	ms, items := madeItems(300, 5, true)
	r, err := Train(t.Context(), ms, inMemory(items), Options{Bits: 16, Anchors: 20,
		Method: model.MethodJoint})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := UpdateOver(t.Context(), r.Model, &scattered{items: items}); !errors.Is(err,
		model.ErrMismatch) {
		t.Error(err)
	}
}

// Follow takes over what was made elsewhere, with labels that have grown there.
func TestFollow(t *testing.T) {
	for _, aim := range []model.Aim{model.AimLabels, model.AimCodes} {
		ms, items := madeItems(800, 6, true)
		opt := Options{Bits: 24, Anchors: 30, Aim: aim}
		r, err := Train(t.Context(), ms, inMemory(items), opt)
		if err != nil {
			t.Fatal(err)
		}
		m, s := r.Model, r.Statistics
		known := m.Labels()
		for _, label := range []uint32{known[len(known)-1] + 5, known[0] + 1_000, known[len(known)-1] + 1} {
			if m, s, err = m.Grow(s, label); err != nil {
				t.Fatal(err)
			}
		}
		grown, err := m.GrownSince(r.Model)
		if err != nil || len(grown) != 3 || !slices.IsSorted(grown) {
			t.Fatal(grown, err)
		}
		o, err := model.NewOnline(r.Model, r.Statistics.Clone())
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Follow(m); err != nil {
			t.Fatal(err)
		}
		if err := o.Statistics().Same(s, 0); err != nil {
			t.Error(err)
		}
		more := []model.Example{{Vectors: items[0].Vectors, Labels: []uint32{grown[0]}}}
		if taught, err := o.Learn(t.Context(), more, model.TeacherLabels, 0); err != nil ||
			taught.Labelled != 1 {
			t.Error(taught, err)
		}
		if next, err := o.Revision(); err != nil || next.Fingerprint() != m.Fingerprint() {
			t.Error(err)
		}
		other, err := Train(t.Context(), ms, inMemory(items[:400]), opt)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Follow(other.Model); !errors.Is(err, model.ErrMismatch) {
			t.Error(err)
		}
		if err := o.Follow(r.Model); !errors.Is(err, model.ErrMismatch) { // which knows fewer labels
			t.Error(err)
		}
	}
}
