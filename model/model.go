package model

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// A Model is what training learned: a code for each set of labels, and for each
// modality a map and a projection that bring a vector near the codes of its
// labels. It is immutable and safe for concurrent use; the slices that its
// methods return are copies.
//
// Memory: 8 q c bytes for C, and for each modality 4 k d for the anchors of an
// RBF map and 8 q k for the projection. Of a sparse modality, anchors take 16 bytes a
// number that they hold, and 4 k d more, up to 16 MiB, where that is faster; d
// numbers of 8 bytes come a few times.
type Model struct {
	bits       int
	method     Method
	seed       uint64
	labels     []uint32 // ascending
	c          []float64
	modalities []Modality
	maps       []*featureMap
	gammas     []float64
	p          []*dense.Packed[float64] // q x k each
	views      Views
	fusions    []fusion  // by view
	mean       []float64 // the mean code of the training items

	fingerprint uint64
}

// Bits returns q, the length of the codes.
func (m *Model) Bits() int { return m.bits }

// Method returns how the model was trained; never MethodAuto.
func (m *Model) Method() Method { return m.method }

// Seed returns the seed of the training.
func (m *Model) Seed() uint64 { return m.seed }

// Labels returns the labels that the model knows, ascending.
func (m *Model) Labels() []uint32 { return slices.Clone(m.labels) }

// Modalities returns the modalities; their positions are the t of Project.
func (m *Model) Modalities() []Modality { return slices.Clone(m.modalities) }

// Gamma returns the ridge that the projection of modality t was solved with.
func (m *Model) Gamma(t int) float64 { return m.gammas[t] }

// Map returns the kind of the map of modality t.
func (m *Model) Map(t int) MapKind { return m.maps[t].kind }

// FeatureKind returns what is done to vectors of modality t before they are mapped.
func (m *Model) FeatureKind(t int) FeatureKind { return m.maps[t].features.kind }

// Features returns k, the number of features of the map of modality t.
func (m *Model) Features(t int) int { return m.maps[t].size() }

// Fingerprint identifies maps and code space: it is equal for two models
// exactly when (but for a collision of 64 bits) a vector has the same features
// and a label set the same code in both, whatever their projections.
func (m *Model) Fingerprint() uint64 { return m.fingerprint }

// LabelCode writes to dst the code of a set of labels, sgn(C y) with
// sgn(0) = +1, and reports whether the model knows any of them; if not, dst is
// left as it was. Labels must be sorted and distinct; unknown ones are ignored.
// len(dst) is codec.Words(Bits()). It costs q additions a label and, up to 16
// labels, no allocation.
//
// For the labels of a training item this is the code that MethodLabels gave it,
// bit for bit; the other methods may have moved Y and can differ where delta is
// small.
func (m *Model) LabelCode(dst codec.Code, labels []uint32) bool {
	var room [16]int32
	columns := appendKnown(room[:0], m.labels, labels)
	if len(columns) == 0 {
		return false
	}
	var z [64]float64 // a word of the code at a time
	for w := range dst {
		from := 64 * w
		to := min(from+64, m.bits)
		sums := z[:to-from]
		clear(sums)
		for _, l := range columns { // ascending, as in the solver: the same rounding
			for j, v := range m.c[int(l)*m.bits+from : int(l)*m.bits+to] {
				sums[j] += v
			}
		}
		codec.PackSigns(dst[w:w+1], sums)
	}
	return true
}

// Knows reports whether the model knows any of the labels, which must be sorted and
// distinct.
func (m *Model) Knows(labels []uint32) bool {
	var room [16]int32
	return len(appendKnown(room[:0], m.labels, labels)) > 0
}

// Refit returns the model with projections solved from the statistics, which
// must belong to its code space. gamma overrides the ridge of the modalities
// that it names; m is left as it was. The codes of labels do not change. The
// error wraps ErrMismatch, or is a *SingularError or *ModalityError.
func (m *Model) Refit(s *Statistics, gamma map[string]float64) (refit *Model, err error) {
	return m.refit(s, gamma, make([]*float64, len(m.maps)))
}

// refit is Refit; see Statistics.solve for the conditions, by modality.
func (m *Model) refit(s *Statistics, gamma map[string]float64, conditions []*float64) (refit *Model, err error) {
	defer guard(&err, "refitting the projections")
	if err := m.checkStatistics(s); err != nil {
		return nil, err
	}
	known := make(map[string]bool)
	next := *m
	next.gammas = slices.Clone(m.gammas)
	for t, mod := range m.modalities {
		known[mod.Name] = true
		if g, ok := gamma[mod.Name]; ok {
			next.gammas[t] = g
		}
	}
	for name := range gamma {
		if !known[name] {
			return nil, &ModalityError{Modality: name, Problem: "has a gamma, but the model does not know it"}
		}
	}
	next.p = nil
	for t, f := range m.maps {
		p, err := s.solve(t, next.gammas[t], conditions[t])
		if err != nil {
			return nil, err
		}
		next.p = append(next.p, dense.Pack(dense.Of(m.bits, f.size(), p)))
	}
	return &next, nil
}

// checkStatistics refuses statistics that do not belong to the model.
func (m *Model) checkStatistics(s *Statistics) error {
	if s.fingerprint != m.fingerprint || s.bits != m.bits || len(s.parts) != len(m.maps) {
		return fmt.Errorf("%w: the statistics belong to another model: use those made with this model's maps", ErrMismatch)
	}
	for t, mod := range m.modalities {
		if s.parts[t].name != mod.Name || s.parts[t].k != m.maps[t].size() {
			return fmt.Errorf("%w: the statistics of modality %q have %d features, the map has %d", ErrMismatch, mod.Name, s.parts[t].k, m.maps[t].size())
		}
	}
	return nil
}

// sign computes the fingerprint, when everything but the projections is there.
func (m *Model) sign() {
	h := fnv.New64a()
	var b []byte
	b = binary.LittleEndian.AppendUint64(b, uint64(m.bits))
	for _, l := range m.labels {
		b = binary.LittleEndian.AppendUint32(b, l)
	}
	b = appendFloats(b, m.c)
	h.Write(b)
	for t, f := range m.maps {
		b = append(b[:0], m.modalities[t].Name...)
		form := byte(formDense)
		if f.sparse != nil {
			form = formSparse
		}
		b = append(b, form, byte(f.kind))
		if f.features.kind != FeaturesRaw {
			b = append(b, byte(f.features.kind))
			b = appendFloats(b, f.features.shift)
			b = appendFloats(b, f.features.scale)
		}
		b = appendFloats(b, f.mean)
		b = appendFloats(b, []float64{f.sigma})
		switch {
		case f.kind == MapLinear:
		case f.sparse != nil:
			for i := range f.sparse.anchors.rows() {
				a := f.sparse.anchors.row(i)
				b = binary.LittleEndian.AppendUint32(b, uint32(len(a.Index)))
				for e, j := range a.Index {
					b = binary.LittleEndian.AppendUint32(b, j)
					b = binary.LittleEndian.AppendUint32(b, math.Float32bits(a.Value[e]))
				}
			}
		default:
			for _, a := range f.anchors.Unpack().Data {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(a))
			}
		}
		h.Write(b)
	}
	m.fingerprint = h.Sum64()
}

func appendFloats(b []byte, x []float64) []byte {
	for _, v := range x {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}
