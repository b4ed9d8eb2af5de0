package mat

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// MaxMemory bounds the part of a compressed variable that is held in memory; a larger variable goes to a
// temporary file. A row has a number in each column, and columns follow one another. So no row is complete
// before everything is decompressed.
var MaxMemory int64 = 64 << 20 // tests lower it

// start decompresses the start of a variable: enough for the parts before its numbers. The source has the
// size of the whole variable.
func (f *file) start(e element) (matrix.Source, error) {
	r, size, err := f.deflated(e)
	if err != nil {
		return matrix.Source{}, err
	}
	b := make([]byte, min(4<<10, size))
	n, err := io.ReadFull(r, b)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return matrix.Source{}, f.src.Fail("a variable at byte %d: %w", e.at, err)
	}
	return matrix.Source{Name: f.src.Name, ReaderAt: bytes.NewReader(b[:n]), Size: size}, nil
}

// deflated starts to decompress a variable, and returns the size that it claims.
func (f *file) deflated(e element) (r io.Reader, size int64, err error) {
	z, err := zlib.NewReader(io.NewSectionReader(f.src, e.at, e.size))
	if err != nil {
		return nil, 0, f.src.Fail("a variable at byte %d is not compressed by zlib: %w", e.at, err)
	}
	var tag [8]byte
	if _, err := io.ReadFull(z, tag[:]); err != nil {
		return nil, 0, f.src.Fail("a compressed variable at byte %d: %w", e.at, err)
	}
	size = 8 + int64(f.order.Uint32(tag[4:]))
	if most := matrix.MaxInflation * (e.size + 1); size > most {
		return nil, 0, f.src.Fail("has a variable that claims %s bytes, its %s can hold %s at most: %w",
			matrix.Thousands(size), matrix.Thousands(e.size), matrix.Thousands(most), errDamaged)
	}
	return io.MultiReader(bytes.NewReader(tag[:]), z), size, nil
}

// inflate decompresses a variable. Closing the source also closes the file.
func (f *file) inflate(e element) (matrix.Source, error) {
	r, size, err := f.deflated(e)
	if err != nil {
		return matrix.Source{}, err
	}
	src := matrix.Source{Name: f.src.Name, Size: size, Closer: f.src.Closer}
	if size <= MaxMemory {
		b := make([]byte, size)
		src.ReaderAt = bytes.NewReader(b)
		_, err = io.ReadFull(r, b)
	} else {
		var tmp *os.File
		if tmp, err = os.CreateTemp("", "fddhdb-mat-"); err != nil {
			return matrix.Source{}, f.src.Fail("%s bytes do not fit into memory: %w", matrix.Thousands(size),
				err)
		}
		src.ReaderAt, src.Closer = tmp, matrix.Closers{matrix.Removed{File: tmp}, f.src.Closer}
		_, err = io.CopyN(tmp, r, size)
		defer func() {
			if err != nil {
				_ = matrix.Removed{File: tmp}.Close() // nothing refers to it yet
			}
		}()
	}
	if err == nil {
		// zlib verifies its checksum after the last byte.
		var n int
		var more [1]byte
		if n, err = io.ReadFull(r, more[:]); err == io.EOF {
			err = nil
		} else if n > 0 {
			err = errors.New("it holds more than it says")
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("it holds less than it says: %w", errDamaged)
	}
	if err != nil {
		return matrix.Source{}, f.src.Fail("a compressed variable: %w", err)
	}
	return src, nil
}
