package model

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model/internal/aims"
	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"github.com/fddhdb/fddhdb/model/internal/rank"
	"github.com/fddhdb/fddhdb/model/internal/wire"
)

// Method is the way in which training solves for C and H. See the package comment.
type Method uint8

const (
	MethodAuto   Method = iota // MethodLabels
	MethodLabels               // the limit of large delta: label sets alone
	MethodJoint                // the exact joint step over C and every R_t
	MethodPaper                // the steps of the paper, one variable at a time
	MethodITQ                  // without labels: signs of turned principal axes, of vectors of one space
	// without labels: signs of turned canonical directions, of items with vectors in several spaces
	MethodCCAITQ
)

var methodNames = []string{"auto", "labels", "joint", "paper", "itq", "cca-itq"}

// Methods names the methods, for errors.
const Methods = "auto, labels, joint, paper, itq or cca-itq"

func (m Method) String() string { return nameOf(methodNames, int(m), "method") }

// MarshalText writes the name, for reports.
func (m Method) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the name.
func (m *Method) UnmarshalText(b []byte) (err error) {
	*m, err = ParseMethod(string(b))
	return err
}

// ParseMethod returns the method with this name: auto, labels, joint, paper, itq or cca-itq.
func ParseMethod(s string) (Method, error) {
	if i := slices.Index(methodNames, s); i >= 0 {
		return Method(i), nil
	}
	return 0, fmt.Errorf("%w: method %q: it is %s", ErrOption, s, Methods)
}

// nameOf returns the name of number i of a kind of option; for an unknown number what names the kind.
func nameOf(names []string, i int, what string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", what, i)
}

// LabelFree reports whether the method learns without labels.
func (m Method) LabelFree() bool { return m >= MethodITQ }

// LabelFree reports whether the model was learned without labels: then it knows none, and has no
// statistics.
func (m *Model) LabelFree() bool { return m.method.LabelFree() }

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
	maps       []*Map                   // by modality
	gammas     []float64                // by modality
	p          []*dense.Packed[float64] // by modality: projection, q x k
	fusion     rank.Fusion              // see Fuse

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
func (m *Model) FeatureKind(t int) FeatureKind { return m.maps[t].features.Kind }

// Features returns k, the number of features of the map of modality t.
func (m *Model) Features(t int) int { return m.maps[t].Size() }

// Maps returns the maps, by modality.
func (m *Model) Maps() []*Map { return slices.Clone(m.maps) }

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
	columns := aims.Known(room[:0], m.labels, labels)
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
			aims.ClearZeros(sums)
		}
		codec.PackSigns(dst[w:w+1], sums)
	}
}

// Knows reports whether the model knows any of the labels, which must be sorted and
// distinct.
func (m *Model) Knows(labels []uint32) bool {
	var room [16]int32
	return len(aims.Known(room[:0], m.labels, labels)) > 0
}

// Refit returns the model with projections solved from statistics of its code space, and
// with the weights of labels that follow from them. gamma overrides the ridge of the
// modalities that it names. m is unchanged, and so are the codes of labels. conditions has for each
// modality an estimate from below of the condition number of A + gamma I in the 1-norm. The error
// wraps ErrMismatch, or is a *SingularError or *ModalityError.
func (m *Model) Refit(s *Statistics,
	gamma map[string]float64) (refit *Model, conditions []float64, err error) {
	defer parallel.Guard(&err, "refitting the projections")
	if err := m.CheckStatistics(s); err != nil {
		return nil, nil, err
	}
	next := *m
	next.gammas = slices.Clone(m.gammas)
	for name, g := range gamma {
		t := slices.IndexFunc(m.modalities, func(mod Modality) bool { return mod.Name == name })
		if t < 0 {
			return nil, nil, &ModalityError{Modality: name,
				Problem: "has a gamma, but the model does not know it"}
		}
		next.gammas[t] = g
	}
	x := m.mixture(s)
	next.p, next.weights = nil, x.weights
	for t, g := range next.gammas {
		w, condition, err := s.solve(t, g)
		if err != nil {
			return nil, nil, err
		}
		next.p, conditions = append(next.p, dense.Pack(m.mix(x, w))), append(conditions, condition)
	}
	return &next, conditions, nil
}

// CheckStatistics refuses statistics that do not belong to the model.
func (m *Model) CheckStatistics(s *Statistics) error {
	if m.LabelFree() {
		return fmt.Errorf("%w: the model was learned without labels, and has no statistics", ErrMismatch)
	}
	if s.fingerprint != m.fingerprint || s.bits != m.bits || s.labels != m.summedLabels() ||
		len(s.parts) != len(m.maps) {
		return fmt.Errorf("%w: the statistics belong to another model: use those made with this model's maps",
			ErrMismatch)
	}
	for t, mod := range m.modalities {
		if s.parts[t].name != mod.Name || s.parts[t].k != m.maps[t].Size() {
			return fmt.Errorf("%w: the statistics of modality %q have %d features, the map has %d",
				ErrMismatch, mod.Name, s.parts[t].k, m.maps[t].Size())
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
	if m.LabelFree() { // the projections make the codes
		b = append(b, byte(m.method))
		b = binary.LittleEndian.AppendUint64(b, m.seed)
	} else if m.aim != AimCodes { // AimCodes adds nothing to the fingerprint
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
		if f.features.Kind != FeaturesRaw {
			b = append(b, byte(f.features.Kind))
			b = appendFloats(b, f.features.Shift)
			b = appendFloats(b, f.features.Scale)
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

// Parts are the contents of a Model. A training ends with them, and reading a stored model begins with them.
type Parts struct {
	Bits   int
	Method Method
	Seed   uint64

	Labels  []uint32  // ascending, distinct; none without labels
	C       []float64 // a row of Bits for each label: C, or C J for AimLabels
	Aim     Aim       // AimAuto without labels
	Prior   float64   // 0 for AimCodes
	Weights []float64 // D, by label; nil for AimCodes

	// By modality.
	Modalities  []Modality
	Maps        []*Map
	Gammas      []float64
	Projections [][]float64 // Bits rows of as many numbers as the map has features; nil: zeros, until Refit
	Fusion      []float64   // the weights of Model.Fuse

	Mean []float64 // that Model.Fuse subtracts, Bits numbers; nil: zeros
}

// New returns the model of the parts, and the reason if they do not make one. The model keeps the slices:
// the caller must not change them.
func New(p Parts) (*Model, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	m := &Model{
		bits: p.Bits, method: p.Method, seed: p.Seed,
		labels: p.Labels, c: p.C, aim: p.Aim, prior: p.Prior, weights: p.Weights,
		modalities: p.Modalities, maps: p.Maps, gammas: p.Gammas,
		fusion: rank.Fusion{Weights: p.Fusion, Mean: p.Mean},
	}
	if p.Mean == nil {
		m.fusion.Mean = make([]float64, m.bits)
	}
	for t, f := range m.maps {
		rows := make([]float64, m.bits*f.Size())
		if p.Projections != nil {
			rows = p.Projections[t]
		}
		m.p = append(m.p, dense.Pack(dense.Of(m.bits, f.Size(), rows)))
	}
	m.sign()
	return m, nil
}

// Parts returns the parts of the model. They share its slices: do not write to them.
func (m *Model) Parts() Parts {
	p := Parts{
		Bits: m.bits, Method: m.method, Seed: m.seed,
		Labels: m.labels, C: m.c, Aim: m.aim, Prior: m.prior, Weights: m.weights,
		Modalities: m.modalities, Maps: m.maps, Gammas: m.gammas,
		Fusion: m.fusion.Weights, Mean: m.fusion.Mean,
	}
	for _, rows := range m.p {
		p.Projections = append(p.Projections, rows.Unpack().Data)
	}
	return p
}

// check refuses parts that make no model.
func (p *Parts) check() error {
	c, T := len(p.Labels), len(p.Modalities)
	switch {
	case codec.CheckBits(p.Bits) != nil:
		return codec.CheckBits(p.Bits)
	case p.Method == MethodAuto || int(p.Method) >= len(methodNames):
		return fmt.Errorf("%v", p.Method)
	case p.Method.LabelFree() && (c > 0 || p.Aim != AimAuto):
		return fmt.Errorf("%d labels and the aim %v, but method %v has none", c, p.Aim, p.Method)
	case !p.Method.LabelFree() &&
		(p.Aim == AimAuto || p.Aim > AimWeighted || p.Aim != AimCodes && p.Method != MethodLabels):
		return fmt.Errorf("the aim %v of method %v", p.Aim, p.Method)
	case !aims.Ascend(p.Labels):
		return errors.New("labels that do not ascend")
	case len(p.C) != c*p.Bits:
		return fmt.Errorf("%d numbers of C for %d labels", len(p.C), c)
	case !(p.Prior >= 0 && p.Prior <= 1):
		return fmt.Errorf("a prior of %g", p.Prior)
	case (p.Aim == AimLabels || p.Aim == AimWeighted) && len(p.Weights) != c,
		(p.Aim == AimAuto || p.Aim == AimCodes) && p.Weights != nil:
		return fmt.Errorf("%d weights of %d labels", len(p.Weights), c)
	case slices.ContainsFunc(p.Weights, func(w float64) bool { return !(w > 0) }):
		return fmt.Errorf("the weights of labels are %v", p.Weights)
	case T == 0 || len(p.Maps) != T || len(p.Gammas) != T || len(p.Fusion) != T ||
		p.Projections != nil && len(p.Projections) != T:
		return fmt.Errorf("%d modalities with %d maps, %d gammas, %d weights and %d projections", T,
			len(p.Maps), len(p.Gammas), len(p.Fusion), len(p.Projections))
	case slices.Min(p.Fusion) < 0 || slices.Max(p.Fusion) == 0:
		return fmt.Errorf("the weights of the fusion are %v", p.Fusion)
	case p.Mean != nil && len(p.Mean) != p.Bits:
		return fmt.Errorf("a mean aim of %d numbers", len(p.Mean))
	case p.Mean != nil && p.Aim == AimCodes && (slices.Min(p.Mean) < -1 || slices.Max(p.Mean) > 1):
		return errors.New("the mean code is not from -1 to 1")
	}
	for t, mod := range p.Modalities {
		switch f := p.Maps[t]; {
		case f.dim != mod.Dim || (f.sparse != nil) != mod.Sparse:
			return fmt.Errorf("the map of modality %q has %d dimensions or another form", mod.Name, f.dim)
		case f.Size() > wire.MaxFeatures:
			return fmt.Errorf("the map of modality %q has %d features", mod.Name, f.Size())
		case !(p.Gammas[t] >= 0):
			return fmt.Errorf("a gamma of %g of modality %q", p.Gammas[t], mod.Name)
		case p.Projections != nil && len(p.Projections[t]) != p.Bits*f.Size():
			return fmt.Errorf("a projection of %d numbers of modality %q, with %d features",
				len(p.Projections[t]), mod.Name, f.Size())
		}
	}
	return nil
}
