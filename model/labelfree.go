package model

import (
	"fmt"
	"slices"
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

// boundedRow writes the centred features of v to dst, each at most farthest.
func boundedRow(f *featureMap, dst []float32, v Vector) {
	f.prepare(dst, v)
	for j, x := range dst {
		dst[j] = min(max(x, -farthest), farthest)
	}
}
