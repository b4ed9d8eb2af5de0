package npy

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// ReadCodes reads packed binary codes from a .npy of type uint8 and shape (n, bits/8). Row i is code i, and
// its bit j is bit j mod 8 of byte j/8, as written by numpy.packbits(..., axis=1, bitorder='little').
// codec.CheckBits must allow the number of bits. The codes belong to the caller; they take
// 8*codec.Words(bits) bytes each.
func ReadCodes(path string) (codec.Codes, error) {
	if ext := strings.ToLower(filepath.Ext(path)); ext != ".npy" {
		return codec.Codes{}, matrix.Source{Name: path}.Fail("%q is not an extension that tells the format: codes are read from .npy files", ext)
	}
	src, err := matrix.Open(path, path)
	if err != nil {
		return codec.Codes{}, err
	}
	defer src.Close()
	return CodesOf(src)
}

// CodesOf is ReadCodes of the bytes of a file.
func CodesOf(src matrix.Source) (codec.Codes, error) {
	h, err := readHeader(src)
	if err != nil {
		return codec.Codes{}, err
	}
	bits := 8 * h.cols
	switch {
	case h.kind.Kind != 'u' || h.kind.Size != 1:
		return codec.Codes{}, src.Fail("holds %s where codes are uint8, 8 bits a byte: make it with numpy.packbits(bits, axis=1, bitorder='little')", h.kind)
	case h.vector: // it could be n codes of 8 bits or one code of 8*n bits
		return codec.Codes{}, src.Fail("has one dimension where codes have shape (n, bits/8): reshape it")
	case codec.CheckBits(bits) != nil:
		return codec.Codes{}, src.Fail("has %s columns of 8 bits: %w", matrix.Thousands(h.cols), codec.CheckBits(bits))
	}
	m, codes, c := h.dense(src), codec.NewCodes(bits, h.rows), codec.NewCode(bits)
	for {
		row, err := m.Next()
		if err == io.EOF {
			return codes, nil
		}
		if err != nil {
			return codec.Codes{}, err
		}
		c.SetBytes(row)
		codes.Append(c)
	}
}
