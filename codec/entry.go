package codec

import (
	"encoding/binary"
	"fmt"
	"math"
)

// This file holds the entries of the blocks of a space. An entry of KindRowCodes has
// the code of a row and its provenance, one of KindCodes a code. One of KindProjection
// has the direction of the fused projection of a row, for cosines among items of one
// code.

// Provenance says where the code of an item comes from: ProvenanceLabels,
// ProvenanceFused, ProvenanceGiven, or ProvenanceModality + t.
type Provenance uint16

const (
	ProvenanceLabels   Provenance = 1   // sgn(C y)
	ProvenanceFused    Provenance = 2   // signs of its fused projections
	ProvenanceGiven    Provenance = 3   // given by the user
	ProvenanceModality Provenance = 256 // plus t: signs of the projection of modality t
)

// A RowCode is an entry of KindRowCodes, RowCodeBytes long: code number u32,
// provenance u16, revision u32, little-endian.
type RowCode struct {
	Code       uint32 // code number
	Provenance Provenance
	Revision   uint32 // that made the code
}

// RowCodeBytes is the length of an encoded RowCode.
const RowCodeBytes = 10

// Append appends the encoded entry.
func (r RowCode) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, r.Code)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(r.Provenance))
	return binary.LittleEndian.AppendUint32(dst, r.Revision)
}

// DecodeRowCode reads an entry of KindRowCodes.
func DecodeRowCode(b []byte) (RowCode, error) {
	if len(b) != RowCodeBytes {
		return RowCode{}, fmt.Errorf("%w: row code of %d bytes, not %d", ErrCorrupt, len(b), RowCodeBytes)
	}
	return RowCode{
		Code:       binary.LittleEndian.Uint32(b),
		Provenance: Provenance(binary.LittleEndian.Uint16(b[4:])),
		Revision:   binary.LittleEndian.Uint32(b[6:]),
	}, nil
}

// ManyRows replaces the row in an entry of KindCodes if several rows carry the code.
// Those rows are in layers of KindCodeRows.
const ManyRows = math.MaxUint32

// CodeEntryBytes returns the length of an entry of KindCodes: a code of q bits, and as
// u32 little-endian the row that carries it, or ManyRows.
func CodeEntryBytes(q int) int { return Bytes(q) + 4 }

// AppendCodeEntry appends the encoded entry of a code of q bits.
func AppendCodeEntry(dst []byte, c Code, q int, row uint32) []byte {
	return binary.LittleEndian.AppendUint32(c.AppendBytes(dst, q), row)
}

// DecodeCodeEntry reads an entry of KindCodes. It writes the code to c. The error wraps
// ErrCorrupt.
func DecodeCodeEntry(c Code, q int, b []byte) (row uint32, err error) {
	if len(b) != CodeEntryBytes(q) {
		return 0, fmt.Errorf("%w: code of %d bytes, not %d", ErrCorrupt, len(b), CodeEntryBytes(q))
	}
	c.SetBytes(b[:Bytes(q)])
	return binary.LittleEndian.Uint32(b[Bytes(q):]), nil
}

// ProjectionBytes returns the length of an encoded projection of q bits: a float32, the
// inverse of the length of the rest, and q signed bytes.
func ProjectionBytes(q int) int { return 4 + q }

// AppendProjection appends the direction of z with 8 bits a dimension. z is scaled so
// that its largest component becomes 127, and rounded. The length of z is lost; a
// cosine does not need it. A zero z has a zero inverse length.
func AppendProjection(dst []byte, z []float64) []byte {
	largest := 0.0
	for _, x := range z {
		largest = max(largest, math.Abs(x))
	}
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if largest == 0 || math.IsInf(largest, 0) || math.IsNaN(largest) {
		return append(dst, make([]byte, len(z))...)
	}
	sum := 0
	for _, x := range z {
		v := int8(math.RoundToEven(x / largest * 127))
		sum += int(v) * int(v)
		dst = append(dst, byte(v))
	}
	binary.LittleEndian.PutUint32(dst[at:], math.Float32bits(float32(1/math.Sqrt(float64(sum)))))
	return dst
}

// Direction returns the signed bytes of an encoded projection, one a dimension, in its memory.
// Their length, which stands before them, follows from them.
func Direction(entry []byte) []byte { return entry[4:] }
