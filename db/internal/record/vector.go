package record

import (
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/model"
)

// OfDense checks a vector that a user gives as one number for each dimension, and returns it
// in the form of the modality. The result aliases dense if the modality is dense too. A wrong
// length is a *fault.DimensionError, a number that is not finite an ErrInvalid.
func (m *Modality) OfDense(dense []float32) (model.Vector, error) {
	if err := m.checkDense(dense); err != nil {
		return model.Vector{}, err
	}
	if !m.Sparse {
		return model.Dense(dense), nil
	}
	v := model.Sparse(nil, nil)
	for j, x := range dense {
		if x != 0 {
			v.Index, v.Value = append(v.Index, uint32(j)), append(v.Value, x)
		}
	}
	return v, nil
}

// OfSparse checks a vector that a user gives by its numbers that are not 0, and returns it in
// the form of the modality. Zeros are left out. The result may alias index and value, if the
// modality is sparse too. Errors are ErrInvalid.
func (m *Modality) OfSparse(index []uint32, value []float32) (model.Vector, error) {
	if err := m.checkSparse(index, value); err != nil {
		return model.Vector{}, err
	}
	v := model.Sparse(index, value)
	if !m.Sparse {
		return model.Dense(Expand(v, m.Dim)), nil
	}
	if slices.Contains(v.Value, 0) {
		v = model.Sparse(nil, nil)
		for e, x := range value {
			if x != 0 {
				v.Index, v.Value = append(v.Index, index[e]), append(v.Value, x)
			}
		}
	}
	return v, nil
}

// checkDense checks the length of a vector and that its values are finite.
func (m *Modality) checkDense(x []float32) error {
	if len(x) != m.Dim {
		return &fault.DimensionError{Modality: m.Name, Got: len(x), Want: m.Dim}
	}
	for i, v := range x {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return fault.Invalid("modality %q: dimension %d is %g", m.Name, i, f)
		}
	}
	return nil
}

// checkSparse checks that indices ascend within the dimensions, and that values are
// finite. There can be no more of them than dimensions.
func (m *Modality) checkSparse(index []uint32, value []float32) error {
	if len(index) != len(value) {
		return fault.Invalid("modality %q: a sparse vector of %d indices and %d values: there is one index for each value", m.Name, len(index), len(value))
	}
	for e, j := range index {
		switch f := float64(value[e]); {
		case int64(j) >= int64(m.Dim):
			return fault.Invalid("modality %q: a sparse vector has index %d, dimensions are 0 to %d", m.Name, j, m.Dim-1)
		case e > 0 && j <= index[e-1]:
			return fault.Invalid("modality %q: index %d of a sparse vector follows %d: indices ascend, each once", m.Name, j, index[e-1])
		case math.IsNaN(f) || math.IsInf(f, 0):
			return fault.Invalid("modality %q: dimension %d is %g", m.Name, j, f)
		}
	}
	return nil
}

// Expand returns a new slice with a number for each dimension of a sparse vector.
func Expand(v model.Vector, dim int) []float32 {
	x := make([]float32, dim)
	for e, j := range v.Index {
		x[j] = v.Value[e]
	}
	return x
}

// CloneVector returns a copy that shares no memory with v.
func CloneVector(v model.Vector) model.Vector {
	return model.Vector{Index: slices.Clone(v.Index), Value: slices.Clone(v.Value)}
}

// AppendVector appends the feature record of a vector, which has the form of its modality.
func AppendVector(dst []byte, v model.Vector) []byte {
	if v.IsSparse() {
		return codec.AppendSparseFeatures(dst, v.Index, v.Value)
	}
	return codec.AppendFeatures(dst, v.Value)
}

// DecodeVector reads the feature record of a vector of the modality into v. It uses the slices
// of v again where they are large enough, and keeps nothing of b. The error wraps
// codec.ErrCorrupt; what is in v is then undefined.
func (m *Modality) DecodeVector(v *model.Vector, b []byte) (err error) {
	if m.Sparse {
		if v.Index == nil {
			*v = model.Sparse(nil, nil)
		}
		index, value, err := codec.AppendDecodedSparse(v.Index[:0], v.Value[:0], m.Dim, b)
		if err == nil {
			v.Index, v.Value = index, value
		}
		return err
	}
	if len(v.Value) != m.Dim {
		if len(b) < 4*m.Dim { // before memory is taken for what is not there
			return fmt.Errorf("%w: features: %d bytes for %d dimensions", codec.ErrCorrupt, len(b), m.Dim)
		}
		v.Value = make([]float32, m.Dim)
	}
	return codec.DecodeFeatures(v.Value, b)
}
