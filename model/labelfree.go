package model

import (
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// A model can be learned without labels. Its codes are the signs of
//
//	z = W_t (x - mean_t),
//
// where x is a vector of modality t with its features (l2 by default, so that its direction counts
// alone), and mean_t their mean. Modalities whose vectors lie in one space (Options.Shared) have the
// same W, and means of their own: the mean of a modality is a constant offset in a space that
// several modalities share. Two methods make W:
//
//   - itq: the q principal axes of the vectors, turned so that z is near its signs (Gong and
//     Lazebnik, "Iterative quantization: a procrustean approach to learning binary codes", CVPR
//     2011).
//   - cca-itq: for vectors in spaces of their own, of items that have several of them: directions in
//     which the vectors of an item correlate, turned likewise (Gong, Lazebnik, Gordo and Perronnin,
//     IEEE TPAMI 2013).
//
// Where there are fewer axes than bits, the other bits come from the same axes, turned at random.
//
// Such a model knows no labels: LabelCode knows none, and items of any labels have the codes of
// their vectors. It has no statistics, and so neither revisions nor an Online.

// LabelFree reports whether the method learns without labels.
func (m Method) LabelFree() bool { return m >= MethodITQ }

// LabelFree reports whether the model was learned without labels: then it knows none, and has no
// statistics.
func (m *Model) LabelFree() bool { return m.method.LabelFree() }

// DefaultLabelFreeBits is the default of Options.Bits without labels. Such codes keep more of what vectors
// say the longer they are; the time of a training grows with the cube of the bits.
const DefaultLabelFreeBits = 256

// checkLabelFree refuses options that are about labels.
func (o Options) checkLabelFree() error {
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
			return fmt.Errorf("%w: %s: it is for learning from labels, and method %v learns without them: leave it out", ErrOption, given.what, o.Method)
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

// newLabelFree returns a model without labels. features, means and w, which is q x d, are by modality.
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
		p := dense.Of(bits, mod.Dim+1, make([]float64, bits*(mod.Dim+1))) // nothing for the intercept
		for j := range bits {
			copy(p.Data[j*p.Cols:], w[t].Data[j*mod.Dim:(j+1)*mod.Dim])
		}
		m.p = append(m.p, dense.Pack(p))
	}
	m.sign()
	return m
}
