package encoder

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// A tensor is a matrix, or a vector, which has one column, of a file in the form of safetensors: eight bytes
// with the length of a header, the header, which is JSON, and the numbers. Numbers are read when they are
// needed: a search needs a few rows of a matrix that may be larger than memory.
type tensor struct {
	file       io.ReaderAt
	kind       string // of its numbers
	rows, cols int
	at         int64 // of its first number
}

// maxHeader bounds the header of a file.
const maxHeader = 16 << 20

// numberBytes are the sizes of the numbers that are read.
var numberBytes = map[string]int64{"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I8": 1}

// readTensors returns the tensors of a file of size bytes, by name.
func readTensors(file io.ReaderAt, size int64) (map[string]*tensor, error) {
	var length [8]byte
	if _, err := file.ReadAt(length[:], 0); err != nil {
		return nil, fmt.Errorf("it is no file of safetensors: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader || int64(n) > size-8 {
		return nil, fmt.Errorf("it is no file of safetensors: a header of %d bytes in a file of %d", n, size)
	}
	header := make([]byte, n)
	if read, err := file.ReadAt(header, 8); read < len(header) {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(header, &all); err != nil {
		return nil, fmt.Errorf("the header: %w", err)
	}
	delete(all, "__metadata__")
	named := map[string]*tensor{}
	for name, text := range all {
		var of struct {
			Dtype   string
			Shape   []int64
			Offsets []int64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(text, &of); err != nil {
			return nil, fmt.Errorf("tensor %.40q: %w", name, err)
		}
		if of.Shape = append(of.Shape, 1); len(of.Shape) > 3 || len(of.Shape) < 2 {
			continue // no matrix: it is of something else
		}
		rows, cols := of.Shape[0], of.Shape[1]
		bytes, known := numberBytes[of.Dtype]
		switch {
		case !known:
			return nil, fmt.Errorf("tensor %.40q: numbers of type %.20q: %s are possible", name, of.Dtype,
				strings.Join(slices.Sorted(maps.Keys(numberBytes)), ", "))
		case len(of.Offsets) != 2 || rows < 0 || cols <= 0 || rows > math.MaxInt32 || cols > math.MaxInt32 ||
			of.Offsets[0] < 0 || of.Offsets[1] > size-8-int64(n) ||
			rows*cols > (of.Offsets[1]-of.Offsets[0])/bytes || of.Offsets[1] < of.Offsets[0]:
			return nil, fmt.Errorf("tensor %.40q: %d x %d numbers are not within the file", name, rows, cols)
		}
		named[name] = &tensor{file, of.Dtype, int(rows), int(cols), 8 + int64(n) + of.Offsets[0]}
	}
	return named, nil
}

// row reads a row into out, whose length is the number of columns.
func (t *tensor) row(i int, out []float64) error {
	if i < 0 || i >= t.rows {
		return fmt.Errorf("row %d of %d", i, t.rows)
	}
	size := int(numberBytes[t.kind])
	b := make([]byte, size*t.cols)
	if n, err := t.file.ReadAt(b, t.at+int64(i)*int64(len(b))); n < len(b) {
		return errors.Join(errors.New("the file of the model has changed"), err)
	}
	for j := range out {
		out[j] = number(t.kind, b[j*size:])
	}
	return nil
}

// number decodes a number of a kind.
func number(kind string, b []byte) float64 {
	order := binary.LittleEndian
	switch kind {
	case "F64":
		return math.Float64frombits(order.Uint64(b))
	case "F32":
		return float64(math.Float32frombits(order.Uint32(b)))
	case "BF16":
		return float64(math.Float32frombits(uint32(order.Uint16(b)) << 16))
	case "F16":
		return half(order.Uint16(b))
	case "I64":
		return float64(int64(order.Uint64(b)))
	case "I32":
		return float64(int32(order.Uint32(b)))
	}
	return float64(int8(b[0]))
}

// half decodes a number of 16 bits: a sign, 5 bits of exponent and 10 of mantissa.
func half(h uint16) float64 {
	exponent, mantissa := int(h>>10&31), float64(h&1023)
	x := math.Ldexp(1+mantissa/1024, exponent-15)
	switch {
	case exponent == 0:
		x = math.Ldexp(mantissa, -24)
	case exponent == 31 && mantissa == 0:
		x = math.Inf(1)
	case exponent == 31:
		x = math.NaN()
	}
	return math.Copysign(x, 1-2*float64(h>>15))
}
