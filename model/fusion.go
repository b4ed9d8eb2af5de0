package model

import (
	"slices"
)

// Weights returns the weights of the fusion, by modality. They are finite and not negative, and at least one is
// positive. See Fuse.
func (m *Model) Weights() []float64 { return slices.Clone(m.fusion.weights) }

// Centre returns the share of the mean aim that Fuse subtracts.
func (m *Model) Centre() float64 { return m.fusion.centre }

// Fuse writes the fused projection of an unlabelled item to dst: q numbers whose signs
// are its code (codec.PackSigns):
//
//	sum over t of w_t (z_t - b gmean)
//
// z[t] is the projection of the item in modality t of the model, q numbers, or nil if
// it lacks t. A projection of zeros, of a vector far from everything, counts as none. w
// are the Weights and b is the Centre. gmean is the mean aim: that of what
// the training items teach (Aim), which a ridge regression pulls all projections towards.
// If there is no weight for any modality of the item, each of them gets the weight
// 1. If the item has no projection, dst is zero.
//
// only is the one modality that made the code, if w is 0 for all others that the item
// has, else -1. It costs q multiplications a modality and no allocation.
func (m *Model) Fuse(dst []float64, z [][]float64) (only int) {
	return m.fusion.fuse(dst, m.mean, z)
}
