package files

import (
	"io"

	"github.com/fddhdb/fddhdb/codec"
)

// ReadCodes reads packed binary codes from a .npy of type uint8 and shape (n, bits/8).
// Row i is code i, and its bit j is bit j mod 8 of byte j/8, as written by
// numpy.packbits(..., axis=1, bitorder='little'). codec.CheckBits must allow the number
// of bits. The codes belong to the caller; they take 8*codec.Words(bits) bytes each.
func ReadCodes(path string) (codec.Codes, error) {
	if extension(path) != ".npy" {
		return codec.Codes{}, unsupported(path, "codes", ".npy files")
	}
	src, err := openSource(path)
	if err != nil {
		return codec.Codes{}, err
	}
	defer src.close()
	return readCodes(src)
}

func readCodes(src source) (codec.Codes, error) {
	m, err := newNPYMatrix(src)
	if err != nil {
		return codec.Codes{}, err
	}
	if m.dtype.kind != 'u' || m.dtype.size != 1 {
		return codec.Codes{}, src.fail("holds %s where codes are uint8, 8 bits a byte: make it with numpy.packbits(bits, axis=1, bitorder='little')", m.dtype)
	}
	if m.vector {
		// It could be n codes of 8 bits or one code of 8*n bits.
		return codec.Codes{}, src.fail("has one dimension where codes have shape (n, bits/8): reshape it")
	}
	bits := 8 * m.cols
	if err := codec.CheckBits(bits); err != nil {
		return codec.Codes{}, src.fail("has %s columns of 8 bits: %w", thousands(m.cols), err)
	}
	codes, c := codec.NewCodes(bits, m.rows), codec.NewCode(bits)
	for {
		row, err := m.nextRow()
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
