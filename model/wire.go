package model

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
	maxModalities = 1 << 10
	maxName       = 1 << 10
	maxDim        = 1 << 24
	maxLabels     = 1 << 20
	maxFeatures   = 1 << 15 // A then takes 8 GiB
)

// All binary forms stand in the same frame, all numbers little-endian:
//
//	offset  size  what
//	0       4     magic: "FDHM" a model, "FDHS" statistics, "FDHR" a revision, and others
//	4       2     uint16: version, wireVersion of all forms
//	6       2     0
//	8       n     body: see marshal.go and revision.go
//	8+n     4     CRC-32C (Castagnoli) of all bytes before it
//
// The version is read before the checksum, since another form may have another
// checksum.
const (
	frameBytes  = 8 + 4
	wireVersion = 5
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// corrupt returns an error that wraps codec.ErrCorrupt.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", codec.ErrCorrupt, fmt.Sprintf(format, args...))
}

// A wireWriter appends to a frame.
type wireWriter struct{ b []byte }

func newWireWriter(magic string) *wireWriter {
	w := &wireWriter{b: []byte(magic)}
	w.u16(wireVersion)
	w.u16(0)
	return w
}

// These write one number.
func (w *wireWriter) u8(v uint8)   { w.b = append(w.b, v) }
func (w *wireWriter) u16(v uint16) { w.b = binary.LittleEndian.AppendUint16(w.b, v) }
func (w *wireWriter) u32(v uint32) { w.b = binary.LittleEndian.AppendUint32(w.b, v) }
func (w *wireWriter) u64(v uint64) { w.b = binary.LittleEndian.AppendUint64(w.b, v) }

// name writes the length of s in two bytes, and s.
func (w *wireWriter) name(s string) {
	w.u16(uint16(len(s)))
	w.b = append(w.b, s...)
}

// f64s and f32s write numbers without their count, which the reader knows from elsewhere.
func (w *wireWriter) f64s(x ...float64) {
	for _, v := range x {
		w.u64(math.Float64bits(v))
	}
}

func (w *wireWriter) f32s(x []float32) {
	for _, v := range x {
		w.u32(math.Float32bits(v))
	}
}

// finish appends the checksum and returns the frame.
func (w *wireWriter) finish() []byte {
	w.u32(crc32.Checksum(w.b, castagnoli))
	return w.b
}

// A wireReader reads the body of a frame. After the first error it returns zeros and
// allocates nothing. It makes a slice only if its bytes are there, so memory is bounded
// by the input.
type wireReader struct {
	b   []byte // what is still to be read
	err error  // the first error
}

// openFrame checks magic, version and checksum.
func openFrame(b []byte, what, magic string) (*wireReader, error) {
	if len(b) < frameBytes || string(b[:4]) != magic {
		return nil, corrupt("these %d bytes are no %s", len(b), what)
	}
	if version := int(binary.LittleEndian.Uint16(b[4:])); version != wireVersion {
		return nil, &codec.FormatError{What: what, Found: version, Supported: wireVersion}
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, corrupt("the checksum of the %s does not match", what)
	}
	if body[6] != 0 || body[7] != 0 {
		return nil, corrupt("bytes 6 and 7 of the %s are not zero", what)
	}
	return &wireReader{b: body[8:]}, nil
}

// fail records the error unless there is one already.
func (r *wireReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = corrupt(format, args...)
	}
}

// take returns the next n bytes, or nil after an error.
func (r *wireReader) take(n int, what string) []byte {
	if r.err == nil && (n < 0 || n > len(r.b)) {
		r.fail("%d bytes are left where %s takes %d", len(r.b), what, n)
	}
	if r.err != nil {
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// These read one number; 0 after an error. what names it in the error.
func (r *wireReader) u8(what string) uint8 {
	if b := r.take(1, what); b != nil {
		return b[0]
	}
	return 0
}

func (r *wireReader) u16(what string) uint16 {
	if b := r.take(2, what); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *wireReader) u32(what string) uint32 {
	if b := r.take(4, what); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *wireReader) u64(what string) uint64 {
	if b := r.take(8, what); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// count reads a uint32 that must lie between low and high.
func (r *wireReader) count(what string, low, high int) int {
	n := int64(r.u32(what))
	if r.err == nil && (n < int64(low) || n > int64(high)) {
		r.fail("%s is %d, not between %d and %d", what, n, low, high)
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

func (r *wireReader) name(what string) string {
	return string(r.take(int(r.u16(what)), what))
}

func (r *wireReader) f64(what string) float64 {
	if x := r.f64s(1, what); x != nil {
		return x[0]
	}
	return 0
}

// f64s reads n finite numbers; nil after an error. n*8 must not overflow.
func (r *wireReader) f64s(n int, what string) []float64 {
	b := r.take(8*n, what)
	if b == nil {
		return nil
	}
	x := make([]float64, n)
	for i := range x {
		x[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		if x[i]-x[i] != 0 {
			r.fail("%s holds %v", what, x[i])
			return nil
		}
	}
	return x
}

// positive reads n finite numbers above 0.
func (r *wireReader) positive(n int, what string) []float64 {
	x := r.f64s(n, what)
	for _, v := range x {
		if !(v > 0) {
			r.fail("%s holds %v", what, v)
			return nil
		}
	}
	return x
}

// f32s is f64s for float32. n*4 must not overflow.
func (r *wireReader) f32s(n int, what string) []float32 {
	b := r.take(4*n, what)
	if b == nil {
		return nil
	}
	x := make([]float32, n)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		if x[i]-x[i] != 0 {
			r.fail("%s holds %v", what, x[i])
			return nil
		}
	}
	return x
}

// close returns the first error, or an error if bytes are left.
func (r *wireReader) close() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes follow the end", len(r.b))
	}
	return r.err
}

// number reads a uint64 that is a count.
func (r *wireReader) number(what string) int {
	n := r.u64(what)
	if r.err == nil && n > math.MaxInt64 {
		r.fail("%s is %d", what, n)
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

// rest reads all that is left.
func (r *wireReader) rest() []byte { return r.take(len(r.b), "the end") }

// numbers writes the length of x in four bytes, and x; numbers of a reader reads that, up to so many.
func (w *wireWriter) numbers(x []uint32) {
	w.u32(uint32(len(x)))
	for _, v := range x {
		w.u32(v)
	}
}

func (r *wireReader) numbers(what string, most int) []uint32 {
	b := r.take(4*r.count("the length of "+what, 0, most), what)
	if b == nil {
		return nil
	}
	x := make([]uint32, len(b)/4)
	for i := range x {
		x[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return x
}

// triangle reads the lower triangle of a k x k matrix, whose upper triangle is zero. The
// stored form has half its size.
func (r *wireReader) triangle(k int, what string) []float64 {
	triangle := r.f64s(k*(k+1)/2, what)
	if r.err != nil {
		return nil
	}
	a := make([]float64, k*k)
	for i := range k {
		copy(a[i*k:], triangle[:i+1])
		triangle = triangle[i+1:]
	}
	return a
}

// bits reads the length of codes.
func (r *wireReader) bits() int {
	q := r.count("the number of bits", codec.MinBits, codec.MaxBits)
	if r.err == nil && codec.CheckBits(q) != nil {
		r.fail("%d bits", q)
	}
	return q
}

// modalityName reads the name of a modality, which must not be in seen, and adds it.
func (r *wireReader) modalityName(seen map[string]bool) string {
	name := r.name("name")
	if r.err == nil && (name == "" || len(name) > maxName || seen[name] || !utf8.ValidString(name)) {
		r.fail("the name of modality %d is %q", len(seen), name)
	}
	seen[name] = true
	return name
}
