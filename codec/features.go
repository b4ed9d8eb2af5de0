package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// A feature record is the vector of one modality of an item.
//
//	byte  1: dense
//	      float32 LE, one a dimension
//
//	byte  2: sparse
//	      uvarint number of values that are not 0; their dimensions, ascending, each
//	      as the uvarint difference to the one before, the first as it is
//	      float32 LE: these values
const (
	featuresDense  = 1
	featuresSparse = 2
)

// AppendFeatures appends the encoded vector.
func AppendFeatures(dst []byte, x []float32) []byte {
	dst = append(slices.Grow(dst, 1+4*len(x)), featuresDense)
	return appendFloats(dst, x)
}

// IsSparseFeatures reports whether a feature record is of the sparse form.
func IsSparseFeatures(b []byte) bool { return len(b) > 0 && b[0] == featuresSparse }

// AppendSparseFeatures appends the encoded vector with value[e] in dimension index[e]
// and 0 elsewhere. The indices ascend strictly, and no value is 0.
func AppendSparseFeatures(dst []byte, index []uint32, value []float32) []byte {
	dst = append(slices.Grow(dst, 2+6*len(index)), featuresSparse)
	dst = binary.AppendUvarint(dst, uint64(len(index)))
	last := uint32(0)
	for _, j := range index {
		dst = binary.AppendUvarint(dst, uint64(j-last))
		last = j
	}
	return appendFloats(dst, value)
}

func appendFloats(dst []byte, x []float32) []byte {
	for _, v := range x {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	return dst
}

// DecodeFeatures reads a feature record of len(x) dimensions, dense or sparse, into x.
// The error wraps ErrCorrupt.
func DecodeFeatures(x []float32, b []byte) error {
	if len(b) == 0 || b[0] != featuresDense {
		return fmt.Errorf("%w: features: not of the dense form", ErrCorrupt)
	}
	if len(b) != 1+4*len(x) {
		return fmt.Errorf("%w: features: %d bytes for %d dimensions", ErrCorrupt, len(b), len(x))
	}
	b = b[1:]
	// A carry out of the exponent of a float says that all of it is set, as in infinities and NaN. Some
	// floats at a time: a search reads many vectors.
	const exponent, one = 0xff << 23, 1 << 23
	carries, rest := uint64(0), x
	for ; len(rest) >= 4 && len(b) >= 16; rest, b = rest[4:], b[16:] {
		u, v := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		rest[0], rest[1] = math.Float32frombits(uint32(u)), math.Float32frombits(uint32(u>>32))
		rest[2], rest[3] = math.Float32frombits(uint32(v)), math.Float32frombits(uint32(v>>32))
		carries |= u&(exponent<<32|exponent) + (one<<32 | one)
		carries |= v&(exponent<<32|exponent) + (one<<32 | one)
	}
	for i := range rest {
		u := binary.LittleEndian.Uint32(b[4*i:])
		rest[i] = math.Float32frombits(u)
		carries |= uint64(u&exponent + one)
	}
	if carries&(1<<63|1<<31) == 0 {
		return nil
	}
	for i, v := range x {
		if math.Float32bits(v)&exponent == exponent {
			return fmt.Errorf("%w: features: dimension %d is %g", ErrCorrupt, i, v)
		}
	}
	return fmt.Errorf("%w: features: a number that is not finite", ErrCorrupt)
}

// AppendDecodedSparse reads a sparse feature record of dim dimensions, and appends
// indices and values. Both grow by at most a fifth of len(b). The error wraps
// ErrCorrupt.
func AppendDecodedSparse(index []uint32, value []float32, dim int, b []byte) ([]uint32, []float32, error) {
	if len(b) == 0 || b[0] != featuresSparse {
		return nil, nil, fmt.Errorf("%w: features: not of the sparse form", ErrCorrupt)
	}
	r := reader{b: b[1:]}
	n := int(r.uvarint(uint64(len(b)) / 5)) // a value takes at least 5 bytes
	next := uint64(0)
	for e := range n {
		d := r.uvarint(math.MaxUint32)
		if e > 0 {
			d += next - 1
		}
		if r.bad || d < next || d >= uint64(dim) {
			return nil, nil, fmt.Errorf("%w: features: dimension of value %d of %d", ErrCorrupt, e, n)
		}
		next = d + 1
		index = append(index, uint32(d))
	}
	if r.bad || len(r.b) != 4*n {
		return nil, nil, fmt.Errorf("%w: features: %d bytes for %d values", ErrCorrupt, len(b), n)
	}
	for e := range n {
		v := math.Float32frombits(binary.LittleEndian.Uint32(r.b[4*e:]))
		if x := float64(v); math.IsNaN(x) || math.IsInf(x, 0) || x == 0 {
			return nil, nil, fmt.Errorf("%w: features: value %d of a sparse vector is %g", ErrCorrupt, e, x)
		}
		value = append(value, v)
	}
	return index, value, nil
}
