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
	"github.com/fddhdb/fddhdb/internal/synth"
)

// small is a model with both kinds of map, and its statistics, in a few KiB.
func small(t testing.TB) *Result {
	t.Helper()
	data := synth.Pairs(synth.Config{Items: 30, Classes: 3, Dims: []int{3, 2}})
	r, err := Train(t.Context(), modalitiesOf([]int{3, 2}), synthetic(data), Options{
		Bits: 8, Anchors: 5, Map: map[string]MapKind{"text": MapLinear},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMarshalRoundTrip(t *testing.T) {
	longWithRace(t)
	dims := []int{9, 5, 4}
	data := synth.Pairs(synth.Config{Items: 200, Classes: 6, Dims: dims, LabelsPerItem: 2, Missing: .3})
	for _, method := range []Method{MethodLabels, MethodJoint, MethodPaper} {
		r, err := Train(t.Context(), modalitiesOf(dims), synthetic(data), Options{
			Bits: 24, Method: method, Seed: 1 << 60, Gamma: map[string]float64{"text": .5},
			Anchors: 30, Views: ViewsTarget,
		})
		if err != nil {
			t.Fatal(err)
		}
		b, sb := marshal(t, r)
		m, err := Unmarshal(b)
		if err != nil {
			t.Fatal(err)
		}
		s, err := UnmarshalStatistics(sb)
		if err != nil {
			t.Fatal(err)
		}
		for v := range dims {
			if !slices.Equal(m.Weights(v), r.Model.Weights(v)) || m.Centre(v) != r.Model.Centre(v) {
				t.Errorf("%v: view %d: weights %v and centre %g came back as %v and %g", method, v, r.Model.Weights(v), r.Model.Centre(v), m.Weights(v), m.Centre(v))
			}
		}
		for _, c := range [][2]any{
			{m.Views(), ViewsTarget},
			{m.Bits(), r.Model.Bits()}, {m.Method(), method}, {m.Seed(), uint64(1 << 60)}, {m.Gamma(1), .5}, {m.Map(2), r.Model.Map(2)},
			{m.Fingerprint(), r.Model.Fingerprint()},
		} {
			if c[0] != c[1] {
				t.Errorf("%v: %v came back as %v", method, c[1], c[0])
			}
		}
		if !slices.Equal(m.Labels(), r.Model.Labels()) || !slices.Equal(m.Modalities(), r.Model.Modalities()) {
			t.Error("labels or modalities are lost")
		}
		for i := range 10 {
			for mod, rows := range data.Vectors {
				if rows[i] == nil {
					continue
				}
				z, want := make([]float64, 24), make([]float64, 24)
				if err := errors.Join(m.NewEncoder().Project(z, mod, rows[i]), r.Model.NewEncoder().Project(want, mod, rows[i])); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(z, want) {
					t.Fatal("a projection differs after the round trip")
				}
			}
		}
		again, sagain := marshal(t, &Result{Model: m, Statistics: s})
		if !bytes.Equal(again, b) || !bytes.Equal(sagain, sb) {
			t.Error("other bytes the second time")
		}
		refit, err := m.Refit(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if rb, _ := refit.MarshalBinary(); !bytes.Equal(rb, b) {
			t.Error("the statistics do not give the model's projections")
		}
	}
}

// The frame is pinned: magic, version, and the checksum at the end.
func TestFrame(t *testing.T) {
	m, s := marshal(t, small(t))
	base, revision := revised(t, true)
	for _, c := range []struct {
		magic string
		b     []byte
		read  func([]byte) error
	}{
		{"FDHM\x02\x00\x00\x00", m, func(b []byte) error { _, err := Unmarshal(b); return err }},
		{"FDHS\x00\x00\x00\x00", s, func(b []byte) error { _, err := UnmarshalStatistics(b); return err }},
		{"FDHR\x00\x00\x00\x00", marshalRevision(t, revision, base), func(b []byte) error { _, err := base.UnmarshalRevision(b); return err }},
	} {
		if string(c.b[:8]) != c.magic {
			t.Fatalf("%q", c.b[:8])
		}
		end := len(c.b) - 4
		if sum := crc32.Checksum(c.b[:end], crc32.MakeTable(crc32.Castagnoli)); binary.LittleEndian.Uint32(c.b[end:]) != sum {
			t.Fatal("the checksum is not where it is said to be")
		}
		for i := range c.b {
			if err := c.read(c.b[:i]); !errors.Is(err, codec.ErrCorrupt) {
				t.Fatalf("the first %d bytes: %v", i, err)
			}
			bad := slices.Clone(c.b)
			bad[i] ^= 4
			var format *FormatError
			switch err := c.read(bad); {
			case i == 4 || i == 5:
				if !errors.As(err, &format) || format.Newest != int(c.magic[4]) {
					t.Fatalf("version changed: %v", err)
				}
			case !errors.Is(err, codec.ErrCorrupt):
				t.Fatalf("byte %d changed: %v", i, err)
			}
		}
		longer := seal(append(slices.Clone(c.b[:end]), 0))
		if err := c.read(longer); !errors.Is(err, codec.ErrCorrupt) {
			t.Fatalf("a byte too many: %v", err)
		}
	}
}

// TestModelsOfBefore: a model of version 1 has no views, so it has one, which sums
// projections, and its vectors are dense. A model of version 0 has no byte for features
// either; they are raw.
func TestModelsOfBefore(t *testing.T) {
	data := synth.Pairs(synth.Config{Items: 30, Classes: 3, Dims: []int{3}})
	r, err := Train(t.Context(), modalitiesOf([]int{3}), synthetic(data), Options{Bits: 8})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := marshal(t, r)
	const views = 8 + 4 + 1 + 8 // offset of the byte
	mean := b[len(b)-4-8*8 : len(b)-4]
	clear(mean) // old models do not have it
	b = seal(b[:len(b)-4])
	form := views + 1 + 4 + 3*4 + 3*8*8 + 4 + 2 + len("image") + 4
	one := slices.Delete(slices.Clone(b[:len(b)-4-8*(1+1+8)]), form, form+1)
	one = slices.Delete(one, views, views+1)
	one[4] = 1
	zero := slices.Delete(slices.Clone(one), form, form+1)
	zero[4] = 0
	for version, old := range [][]byte{zero, one} {
		m, err := Unmarshal(seal(old))
		if err != nil {
			t.Fatalf("version %d: %v", version, err)
		}
		if m.Views() != ViewsShared || !slices.Equal(m.Weights(0), []float64{1}) || m.Centre(0) != 0 {
			t.Errorf("version %d: %v views, weights %v, centre %g", version, m.Views(), m.Weights(0), m.Centre(0))
		}
		if again, err := m.MarshalBinary(); err != nil || !bytes.Equal(again, b) {
			t.Errorf("it is not the model that version %d had (%v)", version, err)
		}
	}
}

// TestBadFusions: fusions that no training makes are refused.
func TestBadFusions(t *testing.T) {
	r := small(t)
	m := r.Model
	for name, spoil := range map[string]func(m *Model){
		"negative":     func(m *Model) { m.fusions[0].weights[1] = -1 },
		"all zero":     func(m *Model) { clear(m.fusions[0].weights) },
		"centre":       func(m *Model) { m.fusions[0].centre = 1.5 },
		"mean":         func(m *Model) { m.mean[3] = -2 },
		"views":        func(m *Model) { m.views = 2 },
		"not a number": func(m *Model) { m.fusions[0].weights[0] = math.NaN() },
	} {
		bad := *m
		bad.fusions, bad.mean = []fusion{{weights: m.Weights(0)}}, slices.Clone(m.mean)
		spoil(&bad)
		b, err := bad.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Unmarshal(b); !errors.Is(err, codec.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// seal appends the checksum.
func seal(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
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
	b, _ := marshal(f, small(f))
	f.Add(b)
	f.Add(b[:100])
	data := synth.Pairs(synth.Config{Items: 30, Classes: 3, Dims: []int{3, 2}})
	for _, rows := range data.Vectors {
		newFeatures(FeaturesHellinger, momentsOf(rows)).applyAll(denseAll(rows)) // no number may be negative
	}
	r, err := Train(f.Context(), modalitiesOf([]int{3, 2}), synthetic(data), Options{
		Bits: 8, Anchors: 5, Map: map[string]MapKind{"image": MapRBFLinear, "text": MapLinear},
		Features: map[string]FeatureKind{"image": FeaturesZScore, "text": FeaturesLog},
		Views:    ViewsTarget, Fusion: Fusion{Rule: FusionTarget},
	})
	if err != nil {
		f.Fatal(err)
	}
	b, _ = marshal(f, r)
	f.Add(b)
	r, err = Train(f.Context(), modalitiesOf([]int{48, 24}), synthetic(synth.ManyLabels{Items: 40, Labels: 12}.Make()),
		Options{Bits: 8, Anchors: 5, LabelEmbedding: true})
	if err != nil {
		f.Fatal(err)
	}
	b, _ = marshal(f, r)
	f.Add(b)
	var xs []Vector
	for _, x := range data.Vectors[0] {
		xs = append(xs, Sparse([]uint32{0, 2}, []float32{x[0], x[1]}))
	}
	for _, d := range []int{3, 2000} { // packed anchors, and lists
		b, _ = marshal(f, trainOn(f, []Modality{{Name: "text", Dim: d, Sparse: true}}, xs, data.Labels, Options{
			Bits: 8, Anchors: 25, Map: map[string]MapKind{"text": MapRBF}, Features: map[string]FeatureKind{"text": FeaturesLog}, Gamma: map[string]float64{"text": 1},
		}))
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = reseal(b)
		var m *Model
		var err error
		bounded(t, len(b), func() { m, err = Unmarshal(b) })
		var format *FormatError
		if err != nil {
			if !errors.Is(err, codec.ErrCorrupt) && !errors.As(err, &format) {
				t.Fatal(err)
			}
			return
		}
		again, err := m.MarshalBinary()
		if old := b[4] < modelVersion; err != nil || !old && !bytes.Equal(again, b) {
			t.Fatalf("other bytes the second time (%v)", err)
		}
		e := m.NewEncoder()
		var z [][]float64
		for i, mod := range m.Modalities() {
			z = append(z, make([]float64, m.Bits()))
			if err := e.Project(z[i], i, make([]float32, mod.Dim)); err != nil {
				t.Fatal(err)
			}
			if err := e.ProjectVectors(z[i], i, []Vector{Sparse([]uint32{uint32(mod.Dim - 1)}, []float32{2})}); err != nil {
				t.Fatal(err)
			}
		}
		for view := range m.Views().count(len(z)) {
			if only := m.Fuse(make([]float64, m.Bits()), view, z); only >= len(z) || len(m.Weights(view)) != len(z) {
				t.Fatalf("view %d: modality %d, weights %v", view, only, m.Weights(view))
			}
		}
		if !m.LabelCode(codec.NewCode(m.Bits()), m.Labels()) {
			t.Fatal("its own labels are unknown")
		}
	})
}

// FuzzStatistics is FuzzModel for statistics.
func FuzzStatistics(f *testing.F) {
	_, b := marshal(f, small(f))
	f.Add(b)
	f.Add(b[:100])
	f.Fuzz(func(t *testing.T, b []byte) {
		b = reseal(b)
		var s *Statistics
		var err error
		bounded(t, len(b), func() { s, err = UnmarshalStatistics(b) })
		var format *FormatError
		if err != nil {
			if !errors.Is(err, codec.ErrCorrupt) && !errors.As(err, &format) {
				t.Fatal(err)
			}
			return
		}
		if again, err := s.MarshalBinary(); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("other bytes the second time (%v)", err)
		}
		for i := range s.parts {
			if _, err := s.Solve(i, 1); err != nil && !errors.As(err, new(*SingularError)) {
				t.Fatal(err)
			}
		}
	})
}

// TestClaimedLabelsTakeNoMemory: a claimed number of labels takes no memory before the
// labels are there.
func TestClaimedLabelsTakeNoMemory(t *testing.T) {
	for _, labels := range []uint32{maxLabels, maxLabels + 1, 1<<32 - 1} {
		w := newWireWriter(modelMagic, 1)
		w.u32(4096)
		w.u8(uint8(MethodLabels))
		w.u64(0)
		w.u32(labels)
		for l := range uint32(1000) {
			w.u32(l)
		}
		b := w.finish()
		var err error
		if n := testing.AllocsPerRun(10, func() { _, err = Unmarshal(b) }); n > 100 {
			t.Errorf("%d labels: %g allocations", labels, n)
		}
		if !errors.Is(err, codec.ErrCorrupt) {
			t.Errorf("%d labels: %v", labels, err)
		}
	}
}
