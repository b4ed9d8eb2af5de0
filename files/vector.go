package files

import "math"

// A vector is a run of numbers of one type, in a file or in a member of one, that is read from
// first to last.
type vector struct {
	src   source
	dtype dtype
	n     int64 // elements
	block []byte
	rest  []byte // part of block that is still to be read
	at    int64  // position of the next block
	end   int64  // position behind the last element
}

// vectorBlock is the number of bytes of a vector that are read at once: a multiple of
// all sizes of elements.
const vectorBlock = 32 << 10

// element returns the next element, valid until the next call. There must be one.
func (v *vector) element() ([]byte, error) {
	if len(v.rest) == 0 {
		n := min(vectorBlock, v.end-v.at)
		if int64(len(v.block)) < n {
			v.block = make([]byte, n)
		}
		v.rest = v.block[:n]
		if err := v.src.readFull(v.rest, v.at); err != nil {
			return nil, err
		}
		v.at += n
		if v.dtype.big {
			swapBytes(v.rest, v.dtype.size)
		}
	}
	b := v.rest[:v.dtype.size]
	v.rest = v.rest[v.dtype.size:]
	return b, nil
}

// integer returns the next element of a vector of integers. Above the range of int64 it
// returns the largest int64.
func (v *vector) integer() (int64, error) {
	b, err := v.element()
	if err != nil {
		return 0, err
	}
	if v.dtype.kind == 'u' {
		return int64(min(v.dtype.word(b), math.MaxInt64)), nil
	}
	return v.dtype.signed(b), nil
}
