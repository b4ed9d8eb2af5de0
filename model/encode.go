package model

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// An Encoder computes projections with one model. It holds the scratch memory
// for them, so that encoding allocates nothing: one goroutine at a time; keep
// them in a pool.
type Encoder struct {
	model   *Model
	scratch mapScratch
	phi     []float64
}

// NewEncoder returns an encoder of the model.
func (m *Model) NewEncoder() *Encoder {
	e := &Encoder{model: m}
	for _, f := range m.maps {
		e.scratch.grow(f)
		if len(e.phi) < f.size() {
			e.phi = make([]float64, f.size())
		}
	}
	return e
}

// Model returns the model of the encoder.
func (e *Encoder) Model() *Model { return e.model }

// Project writes z = P_t phi_t(x) to z: q real numbers whose signs are the code
// of x (codec.PackSigns) and whose sizes say how sure each bit is. len(z) must
// be Bits. A vector of the wrong length is a *DimensionError; NaN and
// infinities are refused with ErrNotFinite. It costs k (d+q) multiplications
// and no allocation, and gives the same bits for the same model and x, always.
func (e *Encoder) Project(z []float64, t int, x []float32) error {
	if len(z) != e.model.bits {
		return fmt.Errorf("%w: room for %d projections, but the model has %d bits", ErrMismatch, len(z), e.model.bits)
	}
	if err := e.model.checkInput(t, x); err != nil {
		return err
	}
	f := e.model.maps[t]
	k := f.size()
	f.apply(e.phi[:k], x, &e.scratch)
	blas64.Gemv(blas.NoTrans, 1, general(e.model.p[t], e.model.bits, k),
		blas64.Vector{N: k, Inc: 1, Data: e.phi[:k]}, 0,
		blas64.Vector{N: len(z), Inc: 1, Data: z})
	return nil
}

// Map writes phi_t(x) to phi, whose length must be Features(t): a row for
// Statistics.Add. The errors are those of Project.
func (e *Encoder) Map(phi []float64, t int, x []float32) error {
	if err := e.model.checkInput(t, x); err != nil {
		return err
	}
	f := e.model.maps[t]
	if len(phi) != f.size() {
		return fmt.Errorf("%w: room for %d features, but modality %q has %d", ErrMismatch, len(phi), e.model.modalities[t].Name, f.size())
	}
	f.apply(phi, x, &e.scratch)
	return nil
}

func (m *Model) checkInput(t int, x []float32) error {
	if t < 0 || t >= len(m.modalities) {
		return fmt.Errorf("%w: the model has %d modalities, not number %d", ErrMismatch, len(m.modalities), t)
	}
	return checkVector(m.modalities[t], x)
}
