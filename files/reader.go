package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxCols bounds the columns of a matrix and the labels of a file. The size of a file
// cannot contradict a matrix without rows, so without a bound its caller would allocate
// a row of any length. No dense vector has so many dimensions: such a file is most
// likely transposed.
const maxCols = 1 << 20

// MaxValues bounds the values that are read from a file as a whole: 8 GiB of float32. A
// sparse matrix of a few bytes may claim any number of rows.
const MaxValues = 1 << 31

// A Reader streams the rows of a matrix of vectors, first to last. It is not safe for
// concurrent use.
type Reader interface {
	// Rows returns the number of rows; it may be 0.
	Rows() int

	// Cols returns the number of columns, at least 1.
	Cols() int

	// Next writes the next row to dst, which belongs to the caller and must have the
	// length Cols(). It returns io.EOF after the last row. Values are rounded to the
	// nearest float32.
	//
	// A value that is NaN, infinite, too large for float32 or no number gives an *Error
	// with row and column (Col >= 0). It costs only that row: the next call reads the
	// row after it. A dst of the wrong length costs no row. Any other error is final;
	// it is an *Error, too. After an error dst has no valid values.
	//
	// It costs O(Cols()) and amortised input. It allocates nothing for a row.
	Next(dst []float32) error

	// Close closes the file; Next then fails with os.ErrClosed. A second Close
	// does nothing.
	Close() error
}

// A Skipper is a Reader that leaves out rows faster than it reads them. Skip leaves out the next n, or all that are
// left, without looking at what they hold.
type Skipper interface{ Skip(n int) error }

// A SparseReader is a Reader of a matrix whose file has only the nonzero numbers. Next
// and NextSparse read the same rows; a caller may use either.
type SparseReader interface {
	Reader

	// NextSparse appends the nonzero numbers of the next row to value and their columns
	// to index. Columns ascend strictly. Otherwise it is like Next. It costs as much as
	// sorting the numbers of the row in the file.
	NextSparse(index []uint32, value []float32) ([]uint32, []float32, error)
}

// vectorFormats lists the extensions that a file of vectors may have. A format without
// a decoder is one that people will try: it gets an error of its own.
var vectorFormats = []struct {
	ext  string
	open func(source) (Reader, error)
}{
	{".npy", openNPY},
	{".npz", openNPZ},
	{".csv", openCSV},
	{".jsonl", openJSONL},
	{".mat", openMAT},
	{".parquet", nil}, // in package parquet, as it needs a library
}

// source is the bytes of a file. Decoders take a source rather than a path, so that
// tests and fuzzers need no file.
type source struct {
	name   string // for errors
	member string // of a file with several matrices; "" if none is named
	io.ReaderAt
	size      int64
	io.Closer // nil: nothing to close
}

func (s source) fail(format string, args ...any) error {
	return fileError(s.name, fmt.Errorf(format, args...))
}

// readFull fills b with the bytes from position at on.
func (s source) readFull(b []byte, at int64) error {
	// io.ReaderAt may return io.EOF with the last byte of the file.
	if n, err := s.ReadAt(b, at); n < len(b) {
		return readError(s.name, err)
	}
	return nil
}

// close closes the source if there is something to close.
func (s source) close() error {
	if s.Closer == nil {
		return nil
	}
	return s.Close()
}

// openSource opens a regular file.
func openSource(path string) (source, error) {
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
			return source{name: path, ReaderAt: f, size: info.Size(), Closer: f}, nil
		}
	}
	return source{}, fileError(path, err)
}

// extension returns the extension in lower case, without the ":NAME" that selects one
// matrix of a file.
func extension(path string) string {
	ext, _, _ := strings.Cut(filepath.Ext(path), ":")
	return strings.ToLower(ext)
}

// unsupported returns the error for a file whose extension belongs to no format, or to
// a format that is not read for this purpose.
func unsupported(path, what, formats string) error {
	ext := extension(path)
	var err error
	switch {
	case ext == "":
		err = fmt.Errorf("the name has no extension to tell the format: %s are read from %s", what, formats)
	case ext == ".npz" || ext == ".mat" || ext == ".parquet":
		err = fmt.Errorf("%s files are not supported: %s are read from %s; convert it with numpy.save", ext, what, formats)
	case knownFormat(ext):
		err = fmt.Errorf("%s files are not supported: %s are read from %s", ext, what, formats)
	default:
		err = fmt.Errorf("%q is not an extension that tells the format: %s are read from %s", ext, what, formats)
	}
	return fileError(path, err)
}

func knownFormat(ext string) bool {
	for _, f := range vectorFormats {
		if f.ext == ext {
			return true
		}
	}
	return false
}

// Open opens a file of vectors. Its extension, in upper or lower case, determines the
// format. Rows are items; a .npy of one dimension is one row.
// FILE.npz:NAME is a member. FILE.npz is a sparse matrix of scipy, whose Reader is a
// SparseReader, or the only member. FILE.jsonl:NAME is a member of the object on each
// line, FILE.mat:NAME a variable, and FILE.mat the only matrix.
//
// The header of a .npy is checked against the size of the file. A .csv or .jsonl is
// read once as a whole to count its rows and to check that all have the same number of
// columns. Either way a truncated or foreign file is an *Error here and not in the
// middle of an import. The Reader keeps at most a row, or 1 MiB of rows, in memory; for
// a .npy in Fortran order or a .mat 64 rows, if they take more. A compressed variable
// of a .mat is held in memory up to 64 MiB, and beyond that in a temporary file. A
// sparse one takes 12 bytes a number. The caller closes the Reader.
//
// The Reader of a .jsonl of sparse vectors has a method ColsAtLeast, which returns
// true: its lines do not state the number of dimensions, so Cols is one more than the
// last column that has a number. The Reader of a .csv has a method HasHeader, which says
// whether the first line is a header.
func Open(path string) (Reader, error) { return OpenAs(path, path) }

// OpenAs is Open of a file that errors call by another name than its path.
func OpenAs(path, name string) (Reader, error) {
	file, member := splitMember(path)
	ext := extension(file)
	var supported []string
	for _, f := range vectorFormats {
		if f.open == nil {
			continue
		}
		if f.ext == ext {
			src, err := openSource(file)
			if err != nil {
				return nil, err
			}
			src.name, src.member = name, member
			r, err := f.open(src)
			if err != nil {
				src.close()
				return nil, err
			}
			return ofVectors(r)
		}
		supported = append(supported, f.ext)
	}
	if ext == ".parquet" {
		return nil, fileError(path, errors.New("package parquet reads vectors from .parquet files"))
	}
	return nil, unsupported(path, "vectors", strings.Join(supported, ", ")+" and .parquet files")
}

// ofVectors makes one row of an array of one dimension, which may also be the classes of
// items.
func ofVectors(r Reader) (Reader, error) {
	n, ok := r.(*npyReader)
	if !ok || !n.m.vector {
		return r, nil
	}
	if err := n.m.oneRow(); err != nil {
		_ = r.Close() // nothing was written
		return nil, err
	}
	return r, nil
}

// ReadAll reads a file of vectors as a whole, as Open and Next do. data holds rows*cols
// values, row after row, and belongs to the caller. It takes 4 bytes of memory a value,
// for at most MaxValues.
func ReadAll(path string) (data []float32, rows, cols int, err error) {
	r, err := Open(path)
	if err != nil {
		return nil, 0, 0, err
	}
	defer r.Close()
	if n := int64(r.Rows()) * int64(r.Cols()); n > MaxValues {
		return nil, 0, 0, fileError(path, fmt.Errorf("has %s values, of which %s at most are read at once: read it row by row", thousands(n), thousands(MaxValues)))
	}
	return readAll(r)
}

func readAll(r Reader) (data []float32, rows, cols int, err error) {
	rows, cols = r.Rows(), r.Cols()
	data = make([]float32, rows*cols)
	for row := range slices.Chunk(data, cols) {
		if err := r.Next(row); err != nil {
			return nil, 0, 0, err
		}
	}
	return data, rows, cols, nil
}
