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

// A Model is the result of training: a code for each set of labels, and for each
// modality a map and a projection that bring a vector near the codes of its labels. It
// is immutable and safe for concurrent use. The slices that its methods return are
// copies.
//
// Memory: 8 q c bytes for C. For each modality, 4 k d for the anchors of an RBF map and
// 8 q k for the projection. Anchors of a sparse modality take 16 bytes for each number
// they hold, and 4 k d more, up to 16 MiB, where that is faster. A modality also holds
// a few rows of d float64.
type Model struct {
	bits       int // q
	method     Method
	seed       uint64
	labels     []uint32  // ascending
	c          []float64 // C, or C J for AimLabels: a row of q for each label
	aim        Aim
	prior      float64   // a; see AimLabels
	weights    []float64 // D, by label; nil for AimCodes
	modalities []Modality
	maps       []*featureMap            // by modality
	gammas     []float64                // by modality
	p          []*dense.Packed[float64] // by modality: projection, q x k
	fusion     fusion
	mean       []float64 // mean of what the training items teach; see Fuse

	// By sign; of everything but the projections and the weights.
	fingerprint uint64
}

// Bits returns q, the length of the codes.
func (m *Model) Bits() int { return m.bits }

// Method returns the method of the training; never MethodAuto.
func (m *Model) Method() Method { return m.method }

// Seed returns the seed of the training.
func (m *Model) Seed() uint64 { return m.seed }

// Labels returns the labels that the model knows, ascending.
func (m *Model) Labels() []uint32 { return slices.Clone(m.labels) }

// Modalities returns the modalities. Their positions are the t of Project.
func (m *Model) Modalities() []Modality { return slices.Clone(m.modalities) }

// Gamma returns the ridge of the projection of modality t.
func (m *Model) Gamma(t int) float64 { return m.gammas[t] }

// Map returns the kind of the map of modality t.
func (m *Model) Map(t int) MapKind { return m.maps[t].kind }

// FeatureKind returns the transformation of vectors of modality t before the map.
func (m *Model) FeatureKind(t int) FeatureKind { return m.maps[t].features.kind }

// Features returns k, the number of features of the map of modality t.
func (m *Model) Features(t int) int { return m.maps[t].size() }

// Fingerprint identifies maps and code space. It is equal for two models exactly when
// every vector has the same features and every label set the same code in both, but for
// a collision of 64 bits. Projections do not matter, but for models without labels, whose code
// space they are.
func (m *Model) Fingerprint() uint64 { return m.fingerprint }

// LabelCode writes the code of a set of labels to dst: sgn(C J y), with sgn(0) = +1; see
// the package comment for J, which is the identity with AimCodes. It
// reports whether the model knows any of the labels; if not, it leaves dst unchanged.
// Labels must be sorted and distinct; unknown labels are ignored. len(dst) is
// codec.Words(Bits()). It costs q additions a label and, up to 16 labels, no
// allocation.
//
// For the labels of a training item this is the code of MethodLabels, bit for bit. The
// other methods may have moved Y, so their codes can differ if delta is small.
func (m *Model) LabelCode(dst codec.Code, labels []uint32) bool {
	var room [16]int32
	columns := appendKnown(room[:0], m.labels, labels)
	if len(columns) == 0 {
		return false
	}
	m.codeOf(dst, columns)
	return true
}

// codeOf is LabelCode for labels as columns.
func (m *Model) codeOf(dst codec.Code, columns []int32) {
	var z [64]float64 // one word of the code at a time
	for w := range dst {
		from := 64 * w
		to := min(from+64, m.bits)
		sums := z[:to-from]
		clear(sums)
		for _, l := range columns { // ascending, as in the solver, for the same rounding
			for j, v := range m.c[int(l)*m.bits+from : int(l)*m.bits+to] {
				sums[j] += v
			}
		}
		if m.aim == AimLabels {
			clearZeros(sums)
		}
		codec.PackSigns(dst[w:w+1], sums)
	}
}

// Knows reports whether the model knows any of the labels, which must be sorted and
// distinct.
func (m *Model) Knows(labels []uint32) bool {
	var room [16]int32
	return len(appendKnown(room[:0], m.labels, labels)) > 0
}

// Refit returns the model with projections solved from statistics of its code space, and
// with the weights of labels that follow from them. gamma overrides the ridge of the
// modalities that it names. m is unchanged, and so are the codes of labels. The error wraps
// ErrMismatch, or is a *SingularError or *ModalityError.
func (m *Model) Refit(s *Statistics, gamma map[string]float64) (refit *Model, err error) {
	return m.refit(s, gamma, make([]*float64, len(m.maps)))
}

// refit is Refit. conditions are by modality; see Statistics.solve.
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
	x := m.mixture(s)
	next.weights = x.weights
	for t := range m.maps {
		w, err := s.solve(t, next.gammas[t], conditions[t])
		if err != nil {
			return nil, err
		}
		next.p = append(next.p, dense.Pack(m.mix(x, w)))
	}
	return &next, nil
}

// checkStatistics refuses statistics that do not belong to the model.
func (m *Model) checkStatistics(s *Statistics) error {
	if m.LabelFree() {
		return fmt.Errorf("%w: the model was learned without labels, and has no statistics", ErrMismatch)
	}
	if s.fingerprint != m.fingerprint || s.bits != m.bits || s.labels != m.summedLabels() || len(s.parts) != len(m.maps) {
		return fmt.Errorf("%w: the statistics belong to another model: use those made with this model's maps", ErrMismatch)
	}
	for t, mod := range m.modalities {
		if s.parts[t].name != mod.Name || s.parts[t].k != m.maps[t].size() {
			return fmt.Errorf("%w: the statistics of modality %q have %d features, the map has %d", ErrMismatch, mod.Name, s.parts[t].k, m.maps[t].size())
		}
	}
	return nil
}

// sign computes the fingerprint. Everything but the projections must be set.
func (m *Model) sign() {
	h := fnv.New64a()
	var b []byte
	b = binary.LittleEndian.AppendUint64(b, uint64(m.bits))
	for _, l := range m.labels {
		b = binary.LittleEndian.AppendUint32(b, l)
	}
	b = appendFloats(b, m.c)
	if m.LabelFree() { // what makes codes are the projections
		b = append(b, byte(m.method))
		b = binary.LittleEndian.AppendUint64(b, m.seed)
	} else if m.aim != AimCodes { // as it was before there was another one
		b = append(b, byte(m.aim))
	}
	if m.aim == AimWeighted {
		b = appendFloats(b, m.weights)
	}
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
		if m.LabelFree() {
			b = appendFloats(b, m.p[t].Unpack().Data)
		}
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
