// Package wire writes and reads the frames in which models, statistics and passes are stored.
package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/codec"
)

// Limits of the binary forms. They keep every product of two sizes far from overflow.
const (
	MaxModalities = 1 << 10
	MaxName       = 1 << 10
	MaxDim        = 1 << 24
	MaxLabels     = 1 << 20
	MaxFeatures   = 1 << 15 // A then takes 8 GiB
)

// All binary forms stand in the same frame, all numbers little-endian:
//
//	offset  size  what
//	0       4     magic: "FDHM" a model, "FDHS" statistics, "FDHR" a revision, and others
//	4       2     uint16: version, Version of all forms
//	6       2     0
//	8       n     body: see model/marshal.go, model/revision.go
//	8+n     4     CRC-32C (Castagnoli) of all bytes before it
//
// The version is read before the checksum, since another form may have another
// checksum.
const (
	FrameBytes = 8 + 4
	Version    = 6
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Corrupt returns an error that wraps codec.ErrCorrupt.
func Corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", codec.ErrCorrupt, fmt.Sprintf(format, args...))
}

// A Writer appends to a frame.
type Writer struct{ B []byte }

func NewWriter(magic string) *Writer {
	w := &Writer{B: []byte(magic)}
	w.u16(Version)
	w.u16(0)
	return w
}

// U8 and the like write one number.
func (w *Writer) U8(v uint8)   { w.B = append(w.B, v) }
func (w *Writer) u16(v uint16) { w.B = binary.LittleEndian.AppendUint16(w.B, v) }
func (w *Writer) U32(v uint32) { w.B = binary.LittleEndian.AppendUint32(w.B, v) }
func (w *Writer) U64(v uint64) { w.B = binary.LittleEndian.AppendUint64(w.B, v) }

// Name writes the length of s in two bytes, and s.
func (w *Writer) Name(s string) {
	w.u16(uint16(len(s)))
	w.B = append(w.B, s...)
}

// F64s and F32s write numbers without their count, which the reader knows from elsewhere.
func (w *Writer) F64s(x ...float64) {
	for _, v := range x {
		w.U64(math.Float64bits(v))
	}
}

func (w *Writer) F32s(x []float32) {
	for _, v := range x {
		w.U32(math.Float32bits(v))
	}
}

// Finish appends the checksum and returns the frame.
func (w *Writer) Finish() []byte {
	w.U32(crc32.Checksum(w.B, castagnoli))
	return w.B
}

// A Reader reads the body of a frame. After the first error it returns zeros and
// allocates nothing. It makes a slice only if its bytes are there, so memory is bounded
// by the input.
type Reader struct {
	B   []byte // what is still to be read
	Err error  // the first error
}

// Open checks magic, version and checksum.
func Open(b []byte, what, magic string) (*Reader, error) {
	if len(b) < FrameBytes || string(b[:4]) != magic {
		return nil, Corrupt("these %d bytes are no %s", len(b), what)
	}
	if version := int(binary.LittleEndian.Uint16(b[4:])); version != Version {
		return nil, &codec.FormatError{What: what, Found: version, Supported: Version}
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, Corrupt("the checksum of the %s does not match", what)
	}
	if body[6] != 0 || body[7] != 0 {
		return nil, Corrupt("bytes 6 and 7 of the %s are not zero", what)
	}
	return &Reader{B: body[8:]}, nil
}

// Fail records the error unless there is one already.
func (r *Reader) Fail(format string, args ...any) {
	if r.Err == nil {
		r.Err = Corrupt(format, args...)
	}
}

// Take returns the next n bytes, or nil after an error.
func (r *Reader) Take(n int, what string) []byte {
	if r.Err == nil && (n < 0 || n > len(r.B)) {
		r.Fail("%d bytes are left where %s takes %d", len(r.B), what, n)
	}
	if r.Err != nil {
		return nil
	}
	b := r.B[:n]
	r.B = r.B[n:]
	return b
}

// U8 and the like read one number; 0 after an error. what names it in the error.
func (r *Reader) U8(what string) uint8 {
	if b := r.Take(1, what); b != nil {
		return b[0]
	}
	return 0
}

func (r *Reader) u16(what string) uint16 {
	if b := r.Take(2, what); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *Reader) U32(what string) uint32 {
	if b := r.Take(4, what); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *Reader) U64(what string) uint64 {
	if b := r.Take(8, what); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Count reads a uint32 that must lie between low and high.
func (r *Reader) Count(what string, low, high int) int {
	n := int64(r.U32(what))
	if r.Err == nil && (n < int64(low) || n > int64(high)) {
		r.Fail("%s is %d, not between %d and %d", what, n, low, high)
	}
	if r.Err != nil {
		return 0
	}
	return int(n)
}

func (r *Reader) Name(what string) string {
	return string(r.Take(int(r.u16(what)), what))
}

func (r *Reader) F64(what string) float64 {
	if x := r.F64s(1, what); x != nil {
		return x[0]
	}
	return 0
}

// F64s reads n finite numbers; nil after an error. n*8 must not overflow.
func (r *Reader) F64s(n int, what string) []float64 {
	b := r.Take(8*n, what)
	if b == nil {
		return nil
	}
	x := make([]float64, n)
	for i := range x {
		x[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		if x[i]-x[i] != 0 {
			r.Fail("%s holds %v", what, x[i])
			return nil
		}
	}
	return x
}

// Positive reads n finite numbers above 0.
func (r *Reader) Positive(n int, what string) []float64 {
	x := r.F64s(n, what)
	for _, v := range x {
		if !(v > 0) {
			r.Fail("%s holds %v", what, v)
			return nil
		}
	}
	return x
}

// F32s is f64s for float32. n*4 must not overflow.
func (r *Reader) F32s(n int, what string) []float32 {
	b := r.Take(4*n, what)
	if b == nil {
		return nil
	}
	x := make([]float32, n)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		if x[i]-x[i] != 0 {
			r.Fail("%s holds %v", what, x[i])
			return nil
		}
	}
	return x
}

// Close returns the first error, or an error if bytes are left.
func (r *Reader) Close() error {
	if r.Err == nil && len(r.B) > 0 {
		r.Fail("%d bytes follow the end", len(r.B))
	}
	return r.Err
}

// Number reads a uint64 that is a count.
func (r *Reader) Number(what string) int {
	n := r.U64(what)
	if r.Err == nil && n > math.MaxInt64 {
		r.Fail("%s is %d", what, n)
	}
	if r.Err != nil {
		return 0
	}
	return int(n)
}

// Rest reads all that is left.
func (r *Reader) Rest() []byte { return r.Take(len(r.B), "the end") }

// Numbers writes the length of x in four bytes, and x; numbers of a reader reads that, up to so many.
func (w *Writer) Numbers(x []uint32) {
	w.U32(uint32(len(x)))
	for _, v := range x {
		w.U32(v)
	}
}

func (r *Reader) Numbers(what string, most int) []uint32 {
	b := r.Take(4*r.Count("the length of "+what, 0, most), what)
	if b == nil {
		return nil
	}
	x := make([]uint32, len(b)/4)
	for i := range x {
		x[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return x
}

// Triangle reads the lower triangle of a k x k matrix, whose upper triangle is zero. The
// stored form has half its size.
func (r *Reader) Triangle(k int, what string) []float64 {
	triangle := r.F64s(k*(k+1)/2, what)
	if r.Err != nil {
		return nil
	}
	a := make([]float64, k*k)
	for i := range k {
		copy(a[i*k:], triangle[:i+1])
		triangle = triangle[i+1:]
	}
	return a
}

// Bits reads the length of codes.
func (r *Reader) Bits() int {
	q := r.Count("the number of bits", codec.MinBits, codec.MaxBits)
	if r.Err == nil && codec.CheckBits(q) != nil {
		r.Fail("%d bits", q)
	}
	return q
}

// ModalityName reads the name of a modality, which must not be in seen, and adds it.
func (r *Reader) ModalityName(seen map[string]bool) string {
	name := r.Name("name")
	if r.Err == nil && (name == "" || len(name) > MaxName || seen[name] || !utf8.ValidString(name)) {
		r.Fail("the name of modality %d is %q", len(seen), name)
	}
	seen[name] = true
	return name
}
