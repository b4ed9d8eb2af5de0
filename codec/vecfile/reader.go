package vecfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxCols bounds the columns of a matrix and the labels of a file. It keeps a
// matrix of no rows, which its size cannot contradict, from making a caller
// allocate a row of any length; and no dense vector of this dimension is meant:
// such a file is most likely transposed.
const maxCols = 1 << 20

// MaxValues bounds what is read of a file as a whole, 8 GiB of float32: a sparse matrix of
// a few bytes may claim any number of rows.
const MaxValues = 1 << 31

// A Reader streams the rows of a matrix of vectors, first to last. It is not
// safe for concurrent use.
type Reader interface {
	// Rows returns the number of rows; it may be 0.
	Rows() int

	// Cols returns the number of columns, at least 1.
	Cols() int

	// Next writes the next row to dst, which belongs to the caller and whose
	// length must be Cols(), and returns io.EOF after the last row. Values are
	// rounded to the nearest float32.
	//
	// A value that is NaN, infinite, too large for float32 or no number at all
	// gives an *Error that names row and column (Col >= 0). It costs that row
	// only: the next call goes on with the row after it. A dst of the wrong length
	// costs no row. Any other error, an *Error too, is final. After an error dst
	// holds nothing of use.
	//
	// The cost is O(Cols()) and amortised input; nothing is allocated a row.
	Next(dst []float32) error

	// Close closes the file; Next then fails with os.ErrClosed. A second Close
	// does nothing.
	Close() error
}

// A SparseReader is a Reader of a matrix of which the file has only the numbers that
// are not 0. Next and NextSparse read the same rows; a caller may use either.
type SparseReader interface {
	Reader

	// NextSparse appends the numbers of the next row to value and their columns,
	// which strictly ascend, to index; no number is 0. It is Next otherwise, and the
	// cost is that of what the row has in the file, sorted.
	NextSparse(index []uint32, value []float32) ([]uint32, []float32, error)
}

// vectorFormats lists the extensions that a file of vectors may have. One
// without a decoder is a format that people will try: it gets an error of its
// own.
var vectorFormats = []struct {
	ext  string
	open func(source) (Reader, error)
}{
	{".npy", openNPY},
	{".npz", openNPZ},
	{".csv", openCSV},
	{".jsonl", openJSONL},
	{".mat", openMAT},
	{".parquet", nil}, // in package parquetfile, as it takes a library
}

// source is the bytes of a file. Decoders take it rather than a path, so that
// tests and fuzzers need no file.
type source struct {
	name   string // for errors
	member string // of a file with several matrices, "" where none is named
	io.ReaderAt
	size      int64
	io.Closer // nil: nothing to close
}

func (s source) fail(format string, args ...any) error {
	return fileError(s.name, fmt.Errorf(format, args...))
}

// readFull fills b with the bytes from at on.
func (s source) readFull(b []byte, at int64) error {
	// io.ReaderAt may return io.EOF with the last byte of the file.
	if n, err := s.ReadAt(b, at); n < len(b) {
		return readError(s.name, err)
	}
	return nil
}

// close is Close for a source that may have nothing to close.
func (s source) close() error {
	if s.Closer == nil {
		return nil
	}
	return s.Close()
}

// openSource opens a regular file.
func openSource(path string) (source, error) {
	f, err := os.Open(path)
	if err != nil {
		return source{}, fileError(path, err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = errors.New("is a directory")
	case !info.Mode().IsRegular():
		err = errors.New("is not a regular file: its size has to be known; copy it to one")
	default:
		return source{name: path, ReaderAt: f, size: info.Size(), Closer: f}, nil
	}
	f.Close()
	return source{}, fileError(path, err)
}

// extension returns the extension in lower case, without the ":NAME" that
// selects one matrix of a file with several.
func extension(path string) string {
	ext, _, _ := strings.Cut(filepath.Ext(path), ":")
	return strings.ToLower(ext)
}

// unsupported is the error for a file whose extension is that of no format read
// here, or of one that is known and not read for this purpose.
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

// Open opens a file of vectors; the extension, in upper or lower case, tells the
// format. Rows are items; a .npy of one dimension is n rows of one column. Of a .npz,
// FILE.npz:NAME is a member; FILE.npz is a sparse matrix of scipy, whose Reader is a
// SparseReader, or the only member. FILE.jsonl:NAME is a member of the object on each
// line, FILE.mat:NAME a variable; FILE.mat is the only matrix.
//
// The header of a .npy is held against the size of the file; a .csv or .jsonl is read
// once as a whole to count its rows and to see that all have the same number of
// columns. Either way a truncated or foreign file is an *Error here and not in
// the middle of an import. The Reader keeps at most a row, or 1 MiB of rows, in
// memory; of a .npy in Fortran order or a .mat at most 64 rows if those are more. A
// compressed variable of a .mat is held in memory up to 64 MiB, and in a temporary file
// beyond; a sparse one takes 12 bytes a number. The caller closes it.
//
// The Reader of a .jsonl of sparse vectors has a method ColsAtLeast, which returns true:
// its lines do not say of how many dimensions they are, so Cols is one more than the last
// column that has a number.
func Open(path string) (Reader, error) {
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
			src.name, src.member = path, member
			r, err := f.open(src)
			if err != nil {
				src.close()
				return nil, err
			}
			return r, nil
		}
		supported = append(supported, f.ext)
	}
	if ext == ".parquet" {
		return nil, fileError(path, errors.New("package parquetfile reads vectors from .parquet files"))
	}
	return nil, unsupported(path, "vectors", strings.Join(supported, ", ")+" and .parquet files")
}

// ReadAll reads a file of vectors as a whole, as Open and Next do: data holds
// rows*cols values, row after row, and belongs to the caller. It costs 4 bytes
// of memory a value, of which there may be MaxValues.
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
