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
		trained := need(Train(t.Context(), ms, inMemory(first), opt))(t, name)
		o := need(model.NewOnline(trained.Model, trained.Statistics.Clone()))(t, name)
		taught := need(o.Learn(t.Context(), later, model.TeacherLabels, 0))(t, name)
		gone := later[:200]
		must(t, o.Forget(t.Context(), gone, taught.Lessons[:200]), name)
		want := need(o.Revision())(t, name)
		now := slices.DeleteFunc(slices.Concat(first, later[200:]),
			func(ex model.Example) bool { return !trained.Model.Knows(ex.Labels) })
		e := &scattered{items: now, cuts: []int{1, 400, 777}, rng: rand.New(rand.NewPCG(1, 1))}
		got, s := need2(UpdateOver(t.Context(), trained.Model, e))(t, name)
		fine(t, s.Same(o.Statistics(), 1e-9), name)
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
					must(t, e.ProjectVectors(z, m, []model.Vector{x}))
					codec.PackSigns(codes[i], z)
				}
				if !slices.Equal(codes[0], codes[1]) {
					t.Fatal(name, "an item has another code")
				}
			}
		}
	}
	ms, items := madeItems(300, 5, true)
	r := need(Train(t.Context(), ms, inMemory(items), Options{Bits: 16, Anchors: 20,
		Method: model.MethodJoint}))(t)
	errorIs(t, third(UpdateOver(t.Context(), r.Model, &scattered{items: items})), model.ErrMismatch)
}

// Follow takes over what was made elsewhere, with labels that have grown there.
func TestFollow(t *testing.T) {
	for _, aim := range []model.Aim{model.AimLabels, model.AimCodes} {
		ms, items := madeItems(800, 6, true)
		opt := Options{Bits: 24, Anchors: 30, Aim: aim}
		r := need(Train(t.Context(), ms, inMemory(items), opt))(t)
		m, s := r.Model, r.Statistics
		known := m.Labels()
		for _, label := range []uint32{known[len(known)-1] + 5, known[0] + 1_000, known[len(known)-1] + 1} {
			m, s = need2(m.Grow(s, label))(t)
		}
		grown, err := m.GrownSince(r.Model)
		if err != nil || len(grown) != 3 || !slices.IsSorted(grown) {
			t.Fatal(grown, err)
		}
		o := need(model.NewOnline(r.Model, r.Statistics.Clone()))(t)
		must(t, o.Follow(m))
		fine(t, o.Statistics().Same(s, 0))
		more := []model.Example{{Vectors: items[0].Vectors, Labels: []uint32{grown[0]}}}
		if taught, err := o.Learn(t.Context(), more, model.TeacherLabels, 0); err != nil ||
			taught.Labelled != 1 {
			t.Error(taught, err)
		}
		if next, err := o.Revision(); err != nil || next.Fingerprint() != m.Fingerprint() {
			t.Error(err)
		}
		other := need(Train(t.Context(), ms, inMemory(items[:400]), opt))(t)
		errorIs(t, o.Follow(other.Model), model.ErrMismatch)
		if err := o.Follow(r.Model); !errors.Is(err, model.ErrMismatch) { // which knows fewer labels
			t.Error(err)
		}
	}
}
