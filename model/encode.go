package model

import (
	"fmt"

	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// An Encoder computes projections with one model. It holds scratch memory, so that
// encoding allocates nothing. One goroutine at a time may use it; keep encoders in a
// pool.
type Encoder struct {
	model   *Model
	scratch mapScratch
	phi     []float32 // features of the vectors in hand
	vectors []Vector  // the vectors in hand; the caller's
}

// NewEncoder returns an encoder of the model. It allocates as it needs memory: 4 (d+k)
// bytes for one vector, 64 times that for ProjectAll.
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

// ProjectAll is Project for several dense vectors of modality t; see ProjectVectors.
func (e *Encoder) ProjectAll(z []float64, t int, xs [][]float32) error {
	defer e.forget()
	for _, x := range xs {
		e.vectors = append(e.vectors, Dense(x))
	}
	return e.ProjectVectors(z, t, e.vectors)
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
		return fmt.Errorf("%w: room for %d projections, but %d vectors have %d bits each", ErrMismatch, len(z), len(xs), q)
	}
	if err := e.model.checkInput(t, xs...); err != nil {
		return err
	}
	f, p := e.model.maps[t], e.model.p[t]
	k := f.size()
	if n := k * min(len(xs), mapRows); len(e.phi) < n {
		e.phi = make([]float32, n)
	}
	for len(xs) > 0 {
		n := min(len(xs), mapRows)
		f.apply(e.phi[:n*k], xs[:n], &e.scratch)
		dense.MulNT(dense.Of(n, q, z), dense.Of(n, k, e.phi), p)
		z, xs = z[n*q:], xs[n:]
	}
	return nil
}

// Map writes phi_t(x) to phi, a row for Statistics.Add. len(phi) must be Features(t).
// The errors are those of Project.
func (e *Encoder) Map(phi []float32, t int, x []float32) error {
	return e.MapVector(phi, t, Dense(x))
}

// MapVector is Map for a dense or sparse vector.
func (e *Encoder) MapVector(phi []float32, t int, x Vector) error {
	if err := e.model.checkInput(t, x); err != nil {
		return err
	}
	f := e.model.maps[t]
	if len(phi) != f.size() {
		return fmt.Errorf("%w: room for %d features, but modality %q has %d", ErrMismatch, len(phi), e.model.modalities[t].Name, f.size())
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
		if err := checkVector(m.modalities[t], x); err != nil {
			return err
		}
	}
	return nil
}
