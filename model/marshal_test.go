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
	"github.com/google/go-cmp/cmp/cmpopts"
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
		r := trained(t, data, Options{Bits: 24, Method: c.method, Aim: c.aim, Seed: 1 << 60,
			Gamma: map[string]float64{"text": .5}, Anchors: 30})
		b, sb := marshal(t, r)
		m, s := need(Unmarshal(b))(t), need(UnmarshalStatistics(sb))(t)
		d := cmp.Diff(r.Model.Parts(), m.Parts(), cmpopts.IgnoreFields(Parts{}, "Maps"))
		failIf(t, d != "" || m.Method() != c.method || m.Gamma(1) != .5 || m.Map(2) != r.Model.Map(2) ||
			m.Fingerprint() != r.Model.Fingerprint() || (m.weights == nil) != (m.Aim() == AimCodes),
			"%v: another model came back:\n%s", c.method, d)
		z, want := make([]float64, 24), make([]float64, 24)
		for mod, rows := range data.Vectors {
			for _, x := range rows[:10] {
				if x != nil {
					must(t, m.NewEncoder().Project(z, mod, x))
					must(t, r.Model.NewEncoder().Project(want, mod, x))
					stopIf(t, !slices.Equal(z, want), "a projection differs after the round trip")
				}
			}
		}
		again, sagain := marshal(t, &Result{Model: m, Statistics: s})
		failIf(t, !bytes.Equal(again, b) || !bytes.Equal(sagain, sb), "other bytes the second time")
		refit, _ := need2(m.Refit(s, nil))(t)
		failIf(t, !bytes.Equal(need(refit.MarshalBinary())(t), b),
			"the statistics do not give the model's projections")
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
	add := func(m *Model, s *Statistics) {
		frames = append(frames, frame{"FDHM", need(m.MarshalBinary())(t), func(b []byte) error {
			return errOf(Unmarshal(b))
		}})
		if s != nil {
			frames = append(frames, frame{"FDHS", need(s.MarshalBinary())(t), func(b []byte) error {
				return errOf(UnmarshalStatistics(b))
			}})
		}
	}
	for _, aim := range []Aim{AimCodes, AimLabels} {
		base, revision := revisedAt(t, true, aim)
		frames = append(frames, frame{"FDHR", marshalRevision(t, revision, base),
			func(b []byte) error { return errOf(base.UnmarshalRevision(b)) }})
		r := smallAt(t, aim)
		add(r.Model, r.Statistics)
	}
	add(taughtStatistics(t, AimLabels))
	weighted := smallWeighted(t)
	add(weighted.Model, weighted.Statistics)
	for _, m := range labelFreeModels(t) {
		add(m, nil)
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
		fine(t, fresh.Same(read, 0), aim, "merged with none")
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
	data := synth.Pairs(synth.Config{Items: 30, Classes: 3, Dims: []int{3, 2}})
	for _, rows := range data.Vectors {
		NewFeatures(FeaturesHellinger, momentsOf(rows)).ApplyAll(denseAll(rows)) // no number may be negative
	}
	logarithms := map[string]FeatureKind{"image": FeaturesZScore, "text": FeaturesLog}
	models := append(labelFreeModels(f), smallAt(f, AimLabels).Model, smallAt(f, AimCodes).Model,
		smallWeighted(f).Model, trained(f, data, Options{Bits: 8, Anchors: 5, Features: logarithms,
			Fusion: "text",
			Map:    map[string]MapKind{"image": MapRBFLinear, "text": MapLinear}}).Model)
	var xs []Vector
	for _, x := range data.Vectors[0] {
		xs = append(xs, Sparse([]uint32{0, 2}, []float32{x[0], x[1]}))
	}
	for _, d := range []int{3, 2000} { // packed anchors, and lists
		models = append(models, trainOn(f, []Modality{{Name: "text", Dim: d, Sparse: true}}, xs, data.Labels,
			Options{Bits: 8, Anchors: 25, Map: map[string]MapKind{"text": MapRBF},
				Features: map[string]FeatureKind{"text": FeaturesLog},
				Gamma:    map[string]float64{"text": 1}}).Model)
	}
	for _, m := range models {
		b := need(m.MarshalBinary())(f)
		f.Add(b)
		f.Add(b[:100])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = reseal(b)
		var m *Model
		var err error
		bounded(t, len(b), func() { m, err = Unmarshal(b) })
		if err != nil {
			stopIf(t, !like(err, codec.ErrCorrupt) && !like(err, new(*codec.FormatError)), "%v", err)
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
	_, ofLabels := taughtStatistics(f, AimLabels)
	_, ofCodes := taughtStatistics(f, AimCodes)
	for _, s := range []*Statistics{ofLabels, ofCodes, small(f).Statistics, smallWeighted(f).Statistics} {
		b := need(s.MarshalBinary())(f)
		f.Add(b)
		f.Add(b[:100])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = reseal(b)
		var s *Statistics
		var err error
		bounded(t, len(b), func() { s, err = UnmarshalStatistics(b) })
		if err != nil {
			stopIf(t, !like(err, codec.ErrCorrupt) && !like(err, new(*codec.FormatError)), "%v", err)
			return
		}
		stopIf(t, !bytes.Equal(need(s.MarshalBinary())(t), b), "other bytes the second time")
		for i := range s.parts {
			err := third(s.solve(i, 1))
			stopIf(t, err != nil && !like(err, new(*SingularError)), "%v", err)
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
