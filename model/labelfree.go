package model

import (
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/internal/rotate"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// A model can be learned without labels. Its codes are the signs of
//
//	z = W_t (x - mean_t),
//
// where x is a vector of modality t with its features (l2 by default, so that its direction counts
// alone), and mean_t their mean. Modalities whose vectors lie in one space (Options.Shared) have the
// same W, and means of their own: the mean of a modality is a constant offset in a space that
// several modalities share. Three methods make W:
//
//   - rotation: q rows of random orthogonal matrices. The angle between two vectors is q times pi
//     times the expected share of bits in which their codes differ (Charikar, "Similarity estimation
//     techniques from rounding algorithms", STOC 2002). W is a seed, and z takes d log d additions
//     (package rotate).
//   - itq: the q principal axes of the vectors, turned so that z is near its signs (Gong and
//     Lazebnik, "Iterative quantization: a procrustean approach to learning binary codes", CVPR
//     2011). It needs q <= d, and gains on rotation where codes are short.
//   - cca-itq: for vectors in spaces of their own, of items that have several of them: directions in
//     which the vectors of an item correlate, turned likewise (Gong, Lazebnik, Gordo and Perronnin,
//     IEEE TPAMI 2013).
//
// Such a model knows no labels: LabelCode knows none, and items of any labels have the codes of
// their vectors. It has no statistics, and so neither revisions nor an Online.

// LabelFree reports whether the method learns without labels.
func (m Method) LabelFree() bool { return m >= MethodRotation }

// LabelFree reports whether the model was learned without labels: then it knows none, and has no
// statistics.
func (m *Model) LabelFree() bool { return m.method.LabelFree() }

// Bits of codes that are tried where none are given, and those that are taken where nothing can be
// measured.
var triedBits = []int{64, 128, 256, 512}

const defaultLabelFreeBits = 256

// checkLabelFree refuses options that are about labels. method is the one that was asked for.
func (o Options) checkLabelFree(method Method) error {
	why := fmt.Sprintf("method %v learns without them", o.Method)
	if method == MethodAuto {
		why = "the items have none"
	}
	for _, given := range []struct {
		what string
		is   bool
	}{
		{"anchors", o.Anchors != 0}, {"sweeps", o.Sweeps != 0}, {"start", o.Start != 0}, {"label embedding", o.LabelEmbedding},
		{"aim", o.Aim != AimAuto}, {"prior", o.Prior != nil}, {"centre", o.Centre != nil}, {"map", len(o.Map) > 0},
		{"width", len(o.Width) > 0}, {"gamma", len(o.Gamma) > 0}, {"mu", len(o.Mu) > 0}, {"delta", o.Delta != 0},
		{"fusion", o.Fusion != Fusion{}},
	} {
		if given.is {
			return fmt.Errorf("%w: %s: it is for learning from labels, and %s: leave it out", ErrOption, given.what, why)
		}
	}
	return nil
}

// groups returns the modalities by the space that their vectors lie in: those that shared names
// together, and each other one by itself. They are in the order of their first modality.
func groups(modalities []Modality, shared [][]string) ([][]int, error) {
	of := make([]int, len(modalities)) // by modality: the first one of its space
	for t := range of {
		of[t] = t
	}
	named := map[string]bool{}
	for _, names := range shared {
		first := -1
		for _, name := range names {
			t := slices.IndexFunc(modalities, func(m Modality) bool { return m.Name == name })
			switch {
			case named[name]:
				return nil, &ModalityError{Modality: name, Problem: "is named twice among those that share a space"}
			case t < 0:
				named[name] = true // it may be one that no item has
				continue
			}
			named[name] = true
			if first < 0 {
				first = t
			}
			if a, b := modalities[first], modalities[t]; a.Dim != b.Dim || a.Sparse != b.Sparse {
				return nil, &ModalityError{Modality: name, Problem: fmt.Sprintf("is said to share a space with %q, but they differ in dimension or form", a.Name)}
			}
			of[t] = first
		}
	}
	for t, first := range of {
		if first > t { // shared names them in another order
			for u := range of {
				if u != t && of[u] == first {
					of[u] = t
				}
			}
			of[t] = t
		}
	}
	var list [][]int
	for t, first := range of {
		if first != t {
			continue
		}
		var group []int
		for u := range of {
			if of[u] == t {
				group = append(group, u)
			}
		}
		list = append(list, group)
	}
	return list, nil
}

// rotations are W of MethodRotation: as many random orthogonal matrices of d rows as q rows take,
// of which the last one gives as many as are left. They are immutable.
type rotations struct {
	bits int
	list []*rotate.Rotation
}

// newRotations returns the rotations of a seed: rotation i has seed + i.
func newRotations(bits, dim int, seed uint64) *rotations {
	r := &rotations{bits: bits}
	for i := range (bits + dim - 1) / dim {
		r.list = append(r.list, rotate.New(dim, seed+uint64(i)))
	}
	return r
}

// project writes z of a vector that is centred to z. scratch has as many numbers as x.
func (r *rotations) project(z []float64, x, scratch []float32) {
	for _, rotation := range r.list {
		copy(scratch, x)
		rotation.Apply(scratch)
		n := min(len(x), len(z))
		for j, v := range scratch[:n] {
			z[j] = float64(v)
		}
		z = z[n:]
	}
}

// projectRotated is ProjectVectors for MethodRotation.
func (e *Encoder) projectRotated(z []float64, t int, xs []Vector) {
	f, r := e.model.maps[t], e.model.rotations
	if len(e.phi) < 2*f.dim {
		e.phi = make([]float32, 2*f.dim)
	}
	centred, rotated := e.phi[:f.dim], e.phi[f.dim:2*f.dim]
	for i, x := range xs {
		f.bounded(centred, x)
		r.project(z[i*r.bits:(i+1)*r.bits], centred, rotated)
	}
}

// farthest bounds what is left of a number when its mean is taken out, so that sums over the
// dimensions stay finite in float32.
const farthest = 1e34

// bounded writes the centred features of v to dst, each at most farthest.
func (f *featureMap) bounded(dst []float32, v Vector) {
	f.prepare(dst, v)
	for j, x := range dst {
		dst[j] = min(max(x, -farthest), farthest)
	}
}

// newLabelFree returns a model without labels. features and means are by modality. w is by modality
// for the methods that have a matrix, q x d; modalities of one space may share it.
func newLabelFree(method Method, bits int, seed uint64, modalities []Modality, prepared []*features, means [][]float64, w []dense.Matrix[float64]) *Model {
	m := &Model{
		bits: bits, method: method, seed: seed, modalities: modalities,
		gammas: make([]float64, len(modalities)), mean: make([]float64, bits),
		fusion: fusion{weights: slices.Repeat([]float64{1}, len(modalities))},
	}
	for t, mod := range modalities {
		f := linearMap(means[t])
		if mod.Sparse {
			f = newSparseMap(MapLinear, means[t], 1, csr{})
		}
		f.features = prepared[t]
		m.maps = append(m.maps, f)
		if method == MethodRotation {
			continue
		}
		p := dense.Of(bits, mod.Dim+1, make([]float64, bits*(mod.Dim+1))) // nothing for the intercept
		for j := range bits {
			copy(p.Data[j*p.Cols:], w[t].Data[j*mod.Dim:(j+1)*mod.Dim])
		}
		m.p = append(m.p, dense.Pack(p))
	}
	if method == MethodRotation {
		m.rotations = newRotations(bits, modalities[0].Dim, seed)
	}
	m.sign()
	return m
}
