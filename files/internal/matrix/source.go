package matrix

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// MaxCols bounds the columns of a matrix and the labels of a file. The size of a file cannot contradict a
// matrix without rows, so without a bound its caller would allocate a row of any length. No dense vector has
// so many dimensions: such a file is most likely transposed.
const MaxCols = 1 << 20

// MaxInflation bounds the expansion of deflate: 258 bytes of a match take two bits.
const MaxInflation = 1032

// A Source is the bytes of a file. Decoders take a Source rather than a path, so that tests and fuzzers need
// no file.
type Source struct {
	Name   string // for errors
	Member string // of a file with several matrices; "" if none is named
	io.ReaderAt
	Size   int64
	Closer io.Closer // nil: nothing to close
}

// Open opens a regular file; errors call it name.
func Open(path, name string) (Source, error) {
	info, err := os.Stat(path) // opening a named pipe would wait for somebody to write to it
	switch {
	case err != nil:
	case info.IsDir():
		err = errors.New("is a directory")
	case !info.Mode().IsRegular():
		err = errors.New("is not a regular file: its size has to be known; copy it to one")
	default:
		var f *os.File
		if f, err = os.Open(path); err == nil {
			return Source{Name: name, ReaderAt: f, Size: info.Size(), Closer: f}, nil
		}
	}
	return Source{}, FileError(name, err)
}

// Fail returns an error about the file as a whole.
func (s Source) Fail(format string, args ...any) error {
	return FileError(s.Name, fmt.Errorf(format, args...))
}

// ReadFull fills b with the bytes from position at on.
func (s Source) ReadFull(b []byte, at int64) error {
	// io.ReaderAt may return io.EOF with the last byte of the file.
	if n, err := s.ReadAt(b, at); n < len(b) {
		return FileError(s.Name, err)
	}
	return nil
}

// Reader returns a reader of all bytes from the first one on.
func (s Source) Reader() io.Reader { return io.NewSectionReader(s, 0, s.Size) }

// Close closes the source if there is something to close.
func (s Source) Close() error {
	if s.Closer == nil {
		return nil
	}
	return s.Closer.Close()
}

// Closers are closed together. Some may be nil.
type Closers []io.Closer

// Close closes all of them.
func (c Closers) Close() error {
	var errs []error
	for _, x := range c {
		if x != nil {
			errs = append(errs, x.Close())
		}
	}
	return errors.Join(errs...)
}
