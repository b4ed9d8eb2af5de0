package db

import (
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/model"
)

// A Sparse is a vector of which most numbers are 0: that in dimension Index[e] is
// Value[e], the indices strictly ascending and below the dimensions of the modality.
// Zeros among the values are dropped. A vector without any numbers, as that of an
// empty text, is one nevertheless: the item has the modality.
type Sparse struct {
	Index []uint32  `json:"i"`
	Value []float32 `json:"v"`
}

// vector returns a vector of the modality in its form, of which one of the two is
// given; it may share the memory of what is given.
func (d *descriptor) vector(t int, dense []float32, sparse *Sparse) (model.Vector, error) {
	m := d.Modalities[t]
	if sparse == nil {
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
	if err := m.checkSparse(sparse); err != nil {
		return model.Vector{}, err
	}
	v := model.Sparse(sparse.Index, sparse.Value)
	if !m.Sparse {
		return model.Dense(expand(v, m.Dim)), nil
	}
	if slices.Contains(v.Value, 0) {
		v = model.Sparse(nil, nil)
		for e, x := range sparse.Value {
			if x != 0 {
				v.Index, v.Value = append(v.Index, sparse.Index[e]), append(v.Value, x)
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
func (m *Modality) checkSparse(x *Sparse) error {
	if len(x.Index) != len(x.Value) {
		return fault.Invalid("modality %q: a sparse vector of %d indices and %d values: there is one index for each value", m.Name, len(x.Index), len(x.Value))
	}
	for e, j := range x.Index {
		switch f := float64(x.Value[e]); {
		case int64(j) >= int64(m.Dim):
			return fault.Invalid("modality %q: a sparse vector has index %d, dimensions are 0 to %d", m.Name, j, m.Dim-1)
		case e > 0 && j <= x.Index[e-1]:
			return fault.Invalid("modality %q: index %d of a sparse vector follows %d: indices ascend, each once", m.Name, j, x.Index[e-1])
		case math.IsNaN(f) || math.IsInf(f, 0):
			return fault.Invalid("modality %q: dimension %d is %g", m.Name, j, f)
		}
	}
	return nil
}

// expand returns a sparse vector with a number for each dimension.
func expand(v model.Vector, dim int) []float32 {
	x := make([]float32, dim)
	for e, j := range v.Index {
		x[j] = v.Value[e]
	}
	return x
}

// cloneVector returns a copy that shares nothing.
func cloneVector(v model.Vector) model.Vector {
	return model.Vector{Index: slices.Clone(v.Index), Value: slices.Clone(v.Value)}
}

// appendVector appends the record of a vector.
func appendVector(dst []byte, v model.Vector) []byte {
	if v.IsSparse() {
		return codec.AppendSparseFeatures(dst, v.Index, v.Value)
	}
	return codec.AppendFeatures(dst, v.Value)
}

// decodeVector reads the record of a vector of the modality into v, whose memory it
// uses again.
func (m *Modality) decodeVector(v *model.Vector, b []byte) (err error) {
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

// squaredDistance returns the squared Euclidean distance of two vectors of one form.
func squaredDistance(x, y model.Vector) (sum float64) {
	add := func(d float64) { sum += d * d }
	if !x.IsSparse() {
		for j, v := range y.Value {
			add(float64(x.Value[j]) - float64(v))
		}
		return sum
	}
	i, j := 0, 0
	for i < len(x.Index) && j < len(y.Index) {
		switch a, b := x.Index[i], y.Index[j]; {
		case a < b:
			add(float64(x.Value[i]))
			i++
		case a > b:
			add(float64(y.Value[j]))
			j++
		default:
			add(float64(x.Value[i]) - float64(y.Value[j]))
			i, j = i+1, j+1
		}
	}
	for _, v := range x.Value[i:] {
		add(float64(v))
	}
	for _, v := range y.Value[j:] {
		add(float64(v))
	}
	return sum
}
