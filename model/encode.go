package model

import (
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
)

// An Encoder computes projections with one model. It holds scratch memory, so that
// encoding allocates nothing. One goroutine at a time may use it; keep encoders in a
// pool.
type Encoder struct {
	model   *Model
	scratch MapScratch
	phi     []float32 // features of the vectors in hand
	vectors []Vector  // the vectors in hand; the caller's
}

// NewEncoder returns an encoder of the model. It allocates as it needs memory: 4 (d+k)
// bytes for one vector, 64 times that for many.
func (m *Model) NewEncoder() *Encoder { return &Encoder{model: m} }

// Model returns the model of the encoder.
func (e *Encoder) Model() *Model { return e.model }

// Project writes z = P_t phi_t(x) to z: q real numbers. Their signs are the code of x
// (codec.PackSigns), and their magnitudes say how certain each bit is. len(z) must be
// Bits. A vector of the wrong length is a *DimensionError; NaN and infinities are
// refused with ErrNotFinite. It costs k (d+q) multiplications, and no allocation. The same
// model and x always give the same bits.
func (e *Encoder) Project(z []float64, t int, x []float32) error {
	defer e.forget()
	e.vectors = append(e.vectors, Dense(x))
	return e.ProjectVectors(z, t, e.vectors)
}

// forget drops the references to the caller's vectors.
func (e *Encoder) forget() {
	clear(e.vectors)
	e.vectors = e.vectors[:0]
}

// ProjectVectors is Project for several vectors of modality t, dense or sparse. z has
// Bits numbers for each vector, the same as Project gives. With tens of vectors, each
// costs several times less than alone, because each part of the model that is read
// serves many. A sparse vector costs at most as many multiplications with the anchors
// as it has numbers. It runs in the caller's goroutine; a caller with several
// goroutines gives each an Encoder and a part of the vectors. On an error z is
// unchanged.
func (e *Encoder) ProjectVectors(z []float64, t int, xs []Vector) error {
	q := e.model.bits
	if len(z) != len(xs)*q {
		return fmt.Errorf("%w: room for %d projections, but %d vectors have %d bits each", ErrMismatch,
			len(z), len(xs), q)
	}
	if err := e.model.checkInput(t, xs...); err != nil {
		return err
	}
	f, p := e.model.maps[t], e.model.p[t]
	k := f.Size()
	if n := k * min(len(xs), parallel.Rows); len(e.phi) < n {
		e.phi = make([]float32, n)
	}
	for len(xs) > 0 {
		n := min(len(xs), parallel.Rows)
		f.apply(e.phi[:n*k], xs[:n], &e.scratch)
		dense.MulNT(dense.Of(n, q, z), dense.Of(n, k, e.phi), p)
		z, xs = z[n*q:], xs[n:]
	}
	return nil
}

// MapVector writes phi_t(x) to phi. len(phi) must be Features(t). It has the errors of Project.
func (e *Encoder) MapVector(phi []float32, t int, x Vector) error {
	if err := e.model.checkInput(t, x); err != nil {
		return err
	}
	f := e.model.maps[t]
	if len(phi) != f.Size() {
		return fmt.Errorf("%w: room for %d features, but modality %q has %d", ErrMismatch, len(phi),
			e.model.modalities[t].Name, f.Size())
	}
	defer e.forget()
	e.vectors = append(e.vectors, x)
	f.apply(phi, e.vectors, &e.scratch)
	return nil
}

// checkInput refuses a modality that the model does not have, and vectors that do not fit
// the modality.
func (m *Model) checkInput(t int, xs ...Vector) error {
	if t < 0 || t >= len(m.modalities) {
		return fmt.Errorf("%w: the model has %d modalities, not number %d", ErrMismatch, len(m.modalities), t)
	}
	for _, x := range xs {
		if err := CheckVector(m.modalities[t], x); err != nil {
			return err
		}
	}
	return nil
}

// Weights returns the weights of the fusion, by modality. They are finite and not negative, and at least one
// is positive. See Fuse.
func (m *Model) Weights() []float64 { return slices.Clone(m.fusion.Weights) }

// Fuse writes the fused projection of an unlabelled item to dst: q numbers whose signs
// are its code (codec.PackSigns):
//
//	sum over t of w_t (z_t - mean)
//
// z[t] is the projection of the item in modality t of the model, q numbers, or nil if it lacks t. A
// projection of zeros, of a vector far from everything, counts as none. w are the Weights. mean is the mean
// of the aims (Aim) of the training items, to which a ridge regression pulls all projections; or zero, if the
// fusion was given. If there is no weight for any modality of the item, each of them gets the weight 1. If
// the item has no projection, dst is zero.
//
// only is the one modality that made the code, if w is 0 for all others that the item
// has, else -1. It costs q multiplications a modality and no allocation.
func (m *Model) Fuse(dst []float64, z [][]float64) (only int) {
	return m.fusion.Fuse(dst, z)
}
