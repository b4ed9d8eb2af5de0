package model

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// revised returns a small model and a revision of it, with added labels if grown.
func revised(t testing.TB, grown bool) (base, revision *Model) {
	t.Helper()
	return revisedAt(t, grown, AimLabels)
}

// revisedAt is revised for an aim.
func revisedAt(t testing.TB, grown bool, aim Aim) (base, revision *Model) {
	t.Helper()
	r := smallAt(t, aim)
	o := learner(t, r)
	items := examples(synth.Pairs(synth.Config{Items: 20, Classes: 3, Dims: []int{3, 2}, Seed: 2}), never)
	if grown {
		for _, l := range []uint32{7, 1 << 31, 4} {
			must(t, o.Grow(l))
		}
		for i := range items {
			items[i].Labels = []uint32{[]uint32{4, 1, 7}[i%3]}
		}
	}
	need(o.Learn(t.Context(), items, TeacherLabels, 0))(t)
	revision = need(o.Revision())(t)
	return r.Model, revision
}

func marshalRevision(t testing.TB, m, base *Model) []byte {
	t.Helper()
	return need(m.MarshalRevision(base))(t)
}

// A revision comes back as the same model, to the last bit, also for a base that was
// itself read.
func TestRevisionRoundTrip(t *testing.T) {
	for both := range 4 {
		grown, aim := both%2 == 1, []Aim{AimLabels, AimCodes}[both/2]
		base, revision := revisedAt(t, grown, aim)
		b := marshalRevision(t, revision, base)
		want, _ := marshal(t, &Result{Model: revision, Statistics: NewStatistics(revision)})
		stored, _ := marshal(t, &Result{Model: base, Statistics: NewStatistics(base)})
		elsewhere := need(Unmarshal(stored))(t)
		for _, base := range []*Model{base, elsewhere} {
			got := need(base.UnmarshalRevision(b))(t)
			whole, _ := got.MarshalBinary()
			failIf(t, !bytes.Equal(whole, want) || got.Fingerprint() != revision.Fingerprint(),
				"another model came back")
			failIf(t, !slices.Equal(got.weights, revision.weights) || aim == AimLabels &&
				slices.Equal(got.weights, base.weights), "weights %v came back as %v", revision.weights,
				got.weights)
			failIf(t, !bytes.Equal(marshalRevision(t, got, base), b) ||
				!bytes.Equal(marshalRevision(t, revision, base), b), "other bytes the second time")
		}
	}
	base, _ := revised(t, false)
	got := need(base.UnmarshalRevision(marshalRevision(t, base, base)))(t)
	failIf(t, got.Fingerprint() != base.Fingerprint(), "a model as a revision of itself is another")
	refit, _ := need2(base.Refit(small(t).Statistics, map[string]float64{"image": 3}))(t)
	got = need(base.UnmarshalRevision(marshalRevision(t, refit, base)))(t)
	failIf(t, got.Gamma(0) != 3, "another gamma: %g", got.Gamma(0))
}

func TestRevisionOfAnother(t *testing.T) {
	base, revision := revised(t, true)
	data := synth.Pairs(synth.Config{Items: 30, Classes: 3, Dims: []int{3, 2}, Seed: 1})
	r := trained(t, data, Options{Bits: 8, Anchors: 5, Map: map[string]MapKind{"text": MapLinear}})
	errorIs(t, errOf(r.Model.UnmarshalRevision(marshalRevision(t, revision, base))), ErrMismatch)
	for what, change := range map[string]func(m *Model){
		"other maps":       func(m *Model) { m.maps = r.Model.maps },
		"a label fewer":    func(m *Model) { m.labels, m.c = m.labels[1:], m.c[m.bits:] },
		"other directions": func(m *Model) { m.c = slices.Clone(m.c); m.c[3]++ },
		"other bits":       func(m *Model) { m.bits = 16 },
		"another seed":     func(m *Model) { m.seed++ },
		"another name":     func(m *Model) { m.modalities = m.Modalities(); m.modalities[1].Name = "sound" },
		"other weights":    func(m *Model) { m.fusion.Weights = m.Weights(); m.fusion.Weights[1] /= 2 },
		"another prior":    func(m *Model) { m.prior = .5 },
		"another aim":      func(m *Model) { m.aim, m.weights = AimCodes, nil },
		"another mean": func(m *Model) {
			m.fusion.Mean = slices.Clone(m.fusion.Mean)
			m.fusion.Mean[0] /= 2
			m.fusion.Mean[1] += .125
		},
	} {
		other := *revision
		change(&other)
		_, err := other.MarshalRevision(base)
		failIf(t, !errors.Is(err, ErrMismatch), "%s: %v", what, err)
	}
	codes, other := revisedAt(t, false, AimCodes)
	errorIs(t, errOf(base.UnmarshalRevision(marshalRevision(t, other, codes))), ErrMismatch)
	errorIs(t, errOf(base.MarshalRevision(revision)), ErrMismatch)
}

// FuzzRevision is FuzzModel for revisions.
func FuzzRevision(f *testing.F) {
	var bases []*Model
	for _, aim := range []Aim{AimLabels, AimCodes} {
		base, revision := revisedAt(f, false, aim)
		bases = append(bases, base)
		f.Add(marshalRevision(f, revision, base))
		_, grown := revisedAt(f, true, aim)
		b := marshalRevision(f, grown, base)
		f.Add(b)
		f.Add(b[:100])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = reseal(b)
		// The fingerprint says which base it is a revision of.
		base := bases[0]
		if len(b) >= 16 && binary.LittleEndian.Uint64(b[8:]) == bases[1].Fingerprint() {
			base = bases[1]
		}
		var m *Model
		var err error
		bounded(t, len(b), func() { m, err = base.UnmarshalRevision(b) })
		if err != nil {
			stopIf(t, !errors.Is(err, codec.ErrCorrupt) && !errors.Is(err, ErrMismatch) &&
				!errors.As(err, new(*codec.FormatError)), "%v", err)
			return
		}
		stopIf(t, !bytes.Equal(need(m.MarshalRevision(base))(t), b), "other bytes the second time")
		stopIf(t, (m.Fingerprint() == base.Fingerprint()) != slices.Equal(m.Labels(), base.Labels()),
			"the fingerprint does not follow the labels")
		e := m.NewEncoder()
		for i, mod := range m.Modalities() {
			must(t, e.Project(make([]float64, m.Bits()), i, make([]float32, mod.Dim)))
		}
		stopIf(t, !m.LabelCode(codec.NewCode(m.Bits()), m.Labels()), "its own labels are unknown")
	})
}
