package model

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/internal/rank"
	"github.com/fddhdb/fddhdb/model/internal/wire"
	"github.com/google/go-cmp/cmp"
)

// small is a model with both kinds of map, and its statistics, in a few KiB.
func small(t testing.TB) *Result {
	t.Helper()
	return smallAt(t, AimLabels)
}

// smallAt is small for an aim.
func smallAt(t testing.TB, aim Aim) *Result {
	t.Helper()
	data := synth.Pairs(synth.Config{Items: 30, Classes: 3, Dims: []int{3, 2}})
	return trained(t, data, Options{Bits: 8, Anchors: 5, Map: map[string]MapKind{"text": MapLinear},
		Aim: aim})
}

// smallWeighted is a small model with more labels than bits, whose aim is AimWeighted.
func smallWeighted(t testing.TB) *Result {
	t.Helper()
	r := trained(t, synth.ManyLabels{Items: 40, Labels: 12}.Make(),
		Options{Bits: 8, Anchors: 5, LabelEmbedding: true, Map: map[string]MapKind{"text": MapRBF}})
	stopIf(t, r.Model.Aim() != AimWeighted, "the aim is %v", r.Model.Aim())
	return r
}

// taughtStatistics are the statistics of small, to which projections have taught some
// items without labels.
func taughtStatistics(t testing.TB, aim Aim) (*Model, *Statistics) {
	t.Helper()
	r := smallAt(t, aim)
	o := learner(t, r)
	items := examples(synth.Pairs(synth.Config{Items: 20, Classes: 3, Dims: []int{3, 2}, Seed: 2}),
		func(i int) bool { return i%2 == 0 })
	need(o.Learn(t.Context(), items, TeacherSelf, 0))(t)
	m := need(o.Revision())(t)
	return m, o.Statistics()
}

func TestMarshalRoundTrip(t *testing.T) {
	effort.LongWithRace(t)
	dims := []int{9, 5, 4}
	data := synth.Pairs(synth.Config{Items: 200, Classes: 6, Dims: dims, LabelsPerItem: 2, Missing: .3})
	for _, c := range []struct {
		method Method
		aim    Aim
	}{{MethodLabels, AimLabels}, {MethodLabels, AimCodes}, {MethodJoint, AimCodes}, {MethodPaper, AimAuto}} {
		method := c.method
		r := trained(t, data, Options{Bits: 24, Method: method, Aim: c.aim, Seed: 1 << 60,
			Gamma: map[string]float64{"text": .5}, Anchors: 30})
		b, sb := marshal(t, r)
		m := need(Unmarshal(b))(t)
		s := need(UnmarshalStatistics(sb))(t)
		d := cmp.Diff(m.fusion, r.Model.fusion)
		failIf(t, d != "", "%v: another fusion came back:\n%s", method, d)
		for _, c := range [][2]any{
			{m.Bits(), r.Model.Bits()}, {m.Method(), method}, {m.Seed(), uint64(1 << 60)}, {m.Gamma(1), .5},
			{m.Map(2), r.Model.Map(2)},
			{m.Fingerprint(), r.Model.Fingerprint()}, {m.Aim(), r.Model.Aim()}, {m.Prior(), r.Model.Prior()},
		} {
			failIf(t, c[0] != c[1], "%v: %v came back as %v", method, c[1], c[0])
		}
		failIf(t, !slices.Equal(m.weights, r.Model.weights) || (m.weights == nil) != (m.Aim() == AimCodes),
			"%v: weights %v came back as %v", method, r.Model.weights, m.weights)
		failIf(t, !slices.Equal(m.Labels(), r.Model.Labels()) ||
			!slices.Equal(m.Modalities(), r.Model.Modalities()), "labels or modalities are lost")
		for i := range 10 {
			for mod, rows := range data.Vectors {
				if rows[i] == nil {
					continue
				}
				z, want := make([]float64, 24), make([]float64, 24)
				must(t, errors.Join(m.NewEncoder().Project(z, mod, rows[i]),
					r.Model.NewEncoder().Project(want, mod, rows[i])))
				stopIf(t, !slices.Equal(z, want), "a projection differs after the round trip")
			}
		}
		again, sagain := marshal(t, &Result{Model: m, Statistics: s})
		failIf(t, !bytes.Equal(again, b) || !bytes.Equal(sagain, sb), "other bytes the second time")
		refit, _ := need2(m.Refit(s, nil))(t)
		rb, _ := refit.MarshalBinary()
		failIf(t, !bytes.Equal(rb, b), "the statistics do not give the model's projections")
	}
}

// The frame is pinned: magic, version, and the checksum at the end.
func TestFrame(t *testing.T) {
	type frame struct {
		magic string
		b     []byte
		read  func([]byte) error
	}
	var frames []frame
	readModel := func(b []byte) error { _, err := Unmarshal(b); return err }
	readStatistics := func(b []byte) error { _, err := UnmarshalStatistics(b); return err }
	for _, aim := range []Aim{AimCodes, AimLabels} {
		m, s := marshal(t, smallAt(t, aim))
		base, revision := revisedAt(t, true, aim)
		frames = append(frames, frame{"FDHM", m, readModel}, frame{"FDHS", s, readStatistics},
			frame{"FDHR", marshalRevision(t, revision, base),
				func(b []byte) error { _, err := base.UnmarshalRevision(b); return err }})
	}
	_, taught := taughtStatistics(t, AimLabels)
	b := need(taught.MarshalBinary())(t)
	m, s := marshal(t, smallWeighted(t))
	frames = append(frames, frame{"FDHS", b, readStatistics}, frame{"FDHM", m, readModel},
		frame{"FDHS", s, readStatistics})
	for _, m := range labelFreeModels(t) {
		b := need(m.MarshalBinary())(t)
		frames = append(frames, frame{"FDHM", b, readModel})
	}
	for _, c := range frames {
		stopIf(t, string(c.b[:8]) != c.magic+"\x06\x00\x00\x00", "%q", c.b[:8])
		end := len(c.b) - 4
		sum := crc32.Checksum(c.b[:end], crc32.MakeTable(crc32.Castagnoli))
		stopIf(t, binary.LittleEndian.Uint32(c.b[end:]) != sum, "the checksum is not where it is said to be")
		for i := range c.b {
			err := c.read(c.b[:i])
			stopIf(t, !like(err, codec.ErrCorrupt), "the first %d bytes: %v", i, err)
			bad := slices.Clone(c.b)
			bad[i] ^= 4
			var format *codec.FormatError
			switch err := c.read(bad); {
			case i == 4 || i == 5:
				stopIf(t, !errors.As(err, &format) ||
					format.Found != int(binary.LittleEndian.Uint16(bad[4:])) || format.Supported != 6,
					"version changed: %v", err)
			case !errors.Is(err, codec.ErrCorrupt):
				t.Fatalf("byte %d changed: %v", i, err)
			}
		}
		longer := seal(append(slices.Clone(c.b[:end]), 0))
		errorIs(t, c.read(longer), codec.ErrCorrupt)
	}
}

// TestBadFusions: fusions that no training makes are refused.
func TestBadFusions(t *testing.T) {
	r := smallAt(t, AimCodes)
	m := r.Model
	for name, spoil := range map[string]func(m *Model){
		"negative":     func(m *Model) { m.fusion.Weights[1] = -1 },
		"all zero":     func(m *Model) { clear(m.fusion.Weights) },
		"mean":         func(m *Model) { m.fusion.Mean[3] = -2 },
		"not a number": func(m *Model) { m.fusion.Weights[0] = math.NaN() },
	} {
		bad := *m
		bad.fusion = rank.Fusion{Weights: m.Weights(), Mean: slices.Clone(m.fusion.Mean)}
		spoil(&bad)
		b := need(bad.MarshalBinary())(t)
		_, err := Unmarshal(b)
		failIf(t, !errors.Is(err, codec.ErrCorrupt), "%s: %v", name, err)
	}
}

// TestBadAims: aims, priors, weights and sums that no training makes are refused.
func TestBadAims(t *testing.T) {
	good := func(s *Statistics, m *Model) error {
		sb := need(s.MarshalBinary())(t)
		mb := need(m.MarshalBinary())(t)
		_, err := UnmarshalStatistics(sb)
		_, merr := Unmarshal(mb)
		return errors.Join(err, merr)
	}
	m, s := taughtStatistics(t, AimLabels)
	weighted := smallWeighted(t)
	must(t, errors.Join(good(s, m), good(weighted.Statistics, weighted.Model)))
	for name, spoil := range map[string]func(m, w *Model, s, ws *Statistics){
		"no aim":           func(m, _ *Model, _, _ *Statistics) { m.aim = AimAuto },
		"unknown aim":      func(m, _ *Model, _, _ *Statistics) { m.aim = 4 },
		"method":           func(m, _ *Model, _, _ *Statistics) { m.method = MethodJoint },
		"weighted, method": func(_, w *Model, _, _ *Statistics) { w.method = MethodPaper },
		"prior":            func(m, _ *Model, _, _ *Statistics) { m.prior = 1.5 },
		"negative prior":   func(_, w *Model, _, _ *Statistics) { w.prior = -.1 },
		"prior NaN":        func(m, _ *Model, _, _ *Statistics) { m.prior = math.NaN() },
		"no weight":        func(m, _ *Model, _, _ *Statistics) { m.weights[1] = 0 },
		"negative weight":  func(m, _ *Model, _, _ *Statistics) { m.weights[2] = -1 },
		"infinite weight":  func(_, w *Model, _, _ *Statistics) { w.weights[3] = math.Inf(1) },
		"weights missing":  func(m, _ *Model, _, _ *Statistics) { m.weights = m.weights[1:] },
		"taught":           func(_, _ *Model, s, _ *Statistics) { s.parts[1].unlabelled = s.parts[1].n + 1 },
		"taught NaN":       func(_, _ *Model, s, _ *Statistics) { s.parts[1].taught[3] = math.NaN() },
		"a label":          func(_, _ *Model, s, _ *Statistics) { s.parts[0].pairs[0] = -1 },
		"pairs":            func(_, _ *Model, s, _ *Statistics) { s.parts[0].pairs[s.labels] = math.Inf(-1) },
		"weight of items":  func(_, _ *Model, _, s *Statistics) { s.parts[0].square = -1 },
	} {
		badM, badW := *m, *weighted.Model
		badM.weights, badW.weights = slices.Clone(m.weights), slices.Clone(weighted.Model.weights)
		badS, badWS := s.Clone(), weighted.Statistics.Clone()
		spoil(&badM, &badW, badS, badWS)
		err := errors.Join(good(badS, &badM), good(badWS, &badW))
		failIf(t, !like(err, codec.ErrCorrupt), "%s: %v", name, err)
	}
	// The aim of statistics is one byte.
	const at = 8 + 8 + 4 + 4 + 4
	for aim, labelled := range map[byte]bool{1: true, 2: false} {
		of := weighted.Statistics
		if labelled {
			of = s
		}
		b := need(of.MarshalBinary())(t)
		b[at] = aim
		_, err := UnmarshalStatistics(reseal(b))
		failIf(t, !like(err, codec.ErrCorrupt), "aim %d of statistics of %d labels: %v", aim, of.labels, err)
	}
}

// TestTaughtStatistics: statistics of items that projections have taught come back, and
// merge, for both aims.
func TestTaughtStatistics(t *testing.T) {
	for _, aim := range []Aim{AimLabels, AimCodes} {
		m, s := taughtStatistics(t, aim)
		b := need(s.MarshalBinary())(t)
		read := need(UnmarshalStatistics(b))(t)
		fine(t, read.Same(s, 0), aim)
		if p := read.parts[1]; aim == AimLabels && (p.unlabelled != 10 || p.n != 50) ||
			aim == AimCodes && (p.unlabelled != 0 || p.square != float64(p.n)) {
			t.Errorf("%v: %d of %d items have no labels, weight %g", aim, p.unlabelled, p.n, p.square)
		}
		refit, _ := need2(m.Refit(read, nil))(t)
		sameProjections(t, aim.String(), refit, m, 1e-9)
		// With twice the items and twice the ridge there is nothing new.
		before := read.Clone()
		fresh := NewStatistics(m)
		for _, err := range []error{read.Merge(s), fresh.Merge(s), fresh.Merge(before)} {
			must(t, err)
		}
		if err := fresh.Same(read, 0); err != nil {
			t.Errorf("%v: merged with none: %v", aim, err)
		}
		twice, _ := need2(m.Refit(read, map[string]float64{"image": 2 * m.Gamma(0),
			"text": 2 * m.Gamma(1)}))(t)
		sameProjections(t, aim.String(), twice, m, 1e-9)
	}
}

// seal appends the checksum.
func seal(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// reseal gives fuzzed bytes a valid checksum, so that the fuzzer gets past it.
func reseal(b []byte) []byte {
	if len(b) < 4 {
		return b
	}
	return seal(slices.Clone(b[:len(b)-4]))
}

// FuzzModel: any bytes give a model or an error that says why. A model that was read
// writes the same bytes, and can be used.
func FuzzModel(f *testing.F) {
	for _, aim := range []Aim{AimLabels, AimCodes} {
		b, _ := marshal(f, smallAt(f, aim))
		f.Add(b)
		f.Add(b[:100])
	}
	b, _ := marshal(f, smallWeighted(f))
	f.Add(b)
	for _, m := range labelFreeModels(f) {
		b, _ := m.MarshalBinary()
		f.Add(b)
	}
	data := synth.Pairs(synth.Config{Items: 30, Classes: 3, Dims: []int{3, 2}})
	for _, rows := range data.Vectors {
		NewFeatures(FeaturesHellinger, momentsOf(rows)).ApplyAll(denseAll(rows)) // no number may be negative
	}
	r := trained(f, data, Options{Bits: 8, Anchors: 5, Map: map[string]MapKind{"image": MapRBFLinear,
		"text": MapLinear},
		Features: map[string]FeatureKind{"image": FeaturesZScore, "text": FeaturesLog}, Fusion: "text"})
	b, _ = marshal(f, r)
	f.Add(b)
	var xs []Vector
	for _, x := range data.Vectors[0] {
		xs = append(xs, Sparse([]uint32{0, 2}, []float32{x[0], x[1]}))
	}
	for _, d := range []int{3, 2000} { // packed anchors, and lists
		b, _ = marshal(f, trainOn(f, []Modality{{Name: "text", Dim: d, Sparse: true}}, xs, data.Labels,
			Options{
				Bits: 8, Anchors: 25, Map: map[string]MapKind{"text": MapRBF},
				Features: map[string]FeatureKind{"text": FeaturesLog}, Gamma: map[string]float64{"text": 1},
			}))
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = reseal(b)
		var m *Model
		var err error
		bounded(t, len(b), func() { m, err = Unmarshal(b) })
		var format *codec.FormatError
		if err != nil {
			stopIf(t, !errors.Is(err, codec.ErrCorrupt) && !errors.As(err, &format), "%v", err)
			return
		}
		again, err := m.MarshalBinary()
		stopIf(t, err != nil || !bytes.Equal(again, b), "other bytes the second time (%v)", err)
		e := m.NewEncoder()
		var z [][]float64
		for i, mod := range m.Modalities() {
			z = append(z, make([]float64, m.Bits()))
			must(t, e.Project(z[i], i, make([]float32, mod.Dim)))
			must(t, e.ProjectVectors(z[i], i, []Vector{Sparse([]uint32{uint32(mod.Dim - 1)}, []float32{2})}))
		}
		only := m.Fuse(make([]float64, m.Bits()), z)
		stopIf(t, only >= len(z) || len(m.Weights()) != len(z), "modality %d, weights %v", only, m.Weights())
		if m.LabelFree() {
			stopIf(t, len(m.Labels()) > 0 || m.Knows([]uint32{0}), "it knows labels")
			return
		}
		stopIf(t, !m.LabelCode(codec.NewCode(m.Bits()), m.Labels()) ||
			!m.LabelAim(make([]float64, m.Bits()), m.Labels()), "its own labels are unknown")
		stopIf(t, m.Aim() == AimAuto || len(m.weights) != len(m.Labels()) && m.Aim() != AimCodes,
			"aim %v, weights %v", m.Aim(), m.weights)
		s := NewStatistics(m)
		stopIf(t, m.CheckStatistics(s) != nil, "statistics of its own are those of another model")
	})
}

// FuzzStatistics is FuzzModel for statistics.
func FuzzStatistics(f *testing.F) {
	for _, aim := range []Aim{AimLabels, AimCodes} {
		_, s := taughtStatistics(f, aim)
		b := need(s.MarshalBinary())(f)
		f.Add(b)
		f.Add(b[:100])
	}
	for _, r := range []*Result{small(f), smallWeighted(f)} {
		_, b := marshal(f, r)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = reseal(b)
		var s *Statistics
		var err error
		bounded(t, len(b), func() { s, err = UnmarshalStatistics(b) })
		var format *codec.FormatError
		if err != nil {
			stopIf(t, !errors.Is(err, codec.ErrCorrupt) && !errors.As(err, &format), "%v", err)
			return
		}
		if again, err := s.MarshalBinary(); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("other bytes the second time (%v)", err)
		}
		for i := range s.parts {
			_, _, err := s.solve(i, 1)
			stopIf(t, err != nil && !errors.As(err, new(*SingularError)), "%v", err)
		}
	})
}

// TestClaimedLabelsTakeNoMemory: a claimed number of labels takes no memory before the
// labels are there.
func TestClaimedLabelsTakeNoMemory(t *testing.T) {
	for _, labels := range []uint32{wire.MaxLabels, wire.MaxLabels + 1, 1<<32 - 1} {
		w := wire.NewWriter(modelMagic)
		w.U32(4096)
		w.U8(uint8(MethodLabels))
		w.U64(0)
		w.U32(labels)
		for l := range uint32(1000) {
			w.U32(l)
		}
		b := w.Finish()
		var err error
		if n := testing.AllocsPerRun(10, func() { _, err = Unmarshal(b) }); n > 100 {
			t.Errorf("%d labels: %g allocations", labels, n)
		}
		failIf(t, !errors.Is(err, codec.ErrCorrupt), "%d labels: %v", labels, err)
	}
}
