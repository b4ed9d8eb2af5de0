package files

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/files/internal/mat"
	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/internal/text"
	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/files/parquet"
	"github.com/fddhdb/fddhdb/files/table"
)

// Error is an error in a file, with its place: file, line or row, column. If Row is 0 or more it costs only
// that row, and the next one can be read.
type Error = matrix.Error

// Vectors are the rows of a matrix in a file.
type Vectors = matrix.Vectors

// maxValues bounds the values that are read from a file as a whole: 8 GiB of float32. A sparse matrix of a
// few bytes may claim any number of rows.
const maxValues = 1 << 31

// formats are the formats of files of vectors. flat says that each number of an array of one dimension is a
// row.
var formats = map[string]func(src matrix.Source, flat bool) (*Vectors, error){
	".npy":     npy.Open,
	".npz":     npy.OpenZip,
	".mat":     mat.Open,
	".csv":     func(src matrix.Source, _ bool) (*Vectors, error) { return text.OpenCSV(src) },
	".jsonl":   func(src matrix.Source, _ bool) (*Vectors, error) { return text.OpenJSONL(src) },
	".parquet": func(src matrix.Source, _ bool) (*Vectors, error) { return parquet.Open(src) },
}

// Cut cuts FILE.npz:NAME, which is one of several matrices of a file, at the last extension that a colon
// follows.
func Cut(path string) (file, member string) {
	lower := strings.ToLower(path)
	cut := -1
	for _, ext := range []string{".npz", ".jsonl", ".ndjson", ".json", ".mat", ".parquet"} {
		for _, packed := range []string{":", ".gz:", ".zst:"} {
			if i := strings.LastIndex(lower, ext+packed); i >= 0 {
				cut = max(cut, i+len(ext+packed)-1)
			}
		}
	}
	if cut < 0 {
		return path, ""
	}
	return path[:cut], path[cut+1:]
}

// Open opens a file of vectors; errors call it name. Its extension, in upper or lower case, determines the
// format. Rows are items; a .npy of one dimension is one row. FILE.npz:NAME is a member. FILE.npz is a sparse
// matrix of scipy, or the only member. FILE.jsonl:NAME is a member of the object on each line, FILE.mat:NAME
// a variable, and FILE.mat the only matrix. FILE.parquet:NAME is a column, and FILE.parquet the only one of
// vectors.
//
// The header of a .npy is checked against the size of the file. A .csv or .jsonl is read once as a whole to
// count its rows and to check that all have the same number of columns. Either way a truncated or foreign
// file is an *Error here and not in the middle of an import. At most a row, or 1 MiB of rows, is kept in
// memory; for a .npy in Fortran order or a .mat 64 rows, if they take more. A compressed variable of a .mat
// is held in memory up to 64 MiB, and beyond that in a temporary file. A sparse one takes 12 bytes a number.
// A file whose name ends in .gz or .zst is decompressed to a temporary file first, which may be 200 times as
// large, or 1 GiB.
// The caller closes it.
func Open(path, name string) (*Vectors, error) {
	return open(path, name, false, "vectors", ".npy, .npz, .csv, .jsonl, .mat and .parquet files")
}

func open(path, name string, flat bool, what, from string) (*Vectors, error) {
	file, member := Cut(path)
	ext := Extension(file)
	format := formats[ext]
	if format == nil {
		return nil, matrix.FileError(name, unsupported(ext, what, from))
	}
	short, _ := Cut(name)
	src, err := matrix.Open(file, short)
	if err != nil {
		return nil, err
	}
	src.Name, src.Member = name, member
	v, err := format(src, flat)
	if err != nil {
		_ = src.Close() // nothing was written
		return nil, err
	}
	return v, nil
}

// Extension returns the extension, in lower case, that determines the format of a file: .jsonl for .json and
// .ndjson, .csv for .tsv, without the .gz or .zst of a compressed file.
func Extension(file string) string {
	file, _ = matrix.Inner(file)
	switch ext := strings.ToLower(filepath.Ext(file)); ext {
	case ".json", ".ndjson":
		return ".jsonl"
	case ".tsv":
		return ".csv"
	default:
		return ext
	}
}

// unsupported returns the error for an extension of no format, or of one that is not read for this purpose.
func unsupported(ext, what, from string) error {
	switch {
	case IsArrow("x" + ext):
		return errors.New(ArrowAdvice)
	case ext == "":
		return fmt.Errorf("the name has no extension to tell the format: %s are read from %s", what, from)
	case formats[ext] != nil:
		return fmt.Errorf("%s files are not supported: %s are read from %s", ext, what, from)
	}
	return fmt.Errorf("%q is not an extension that tells the format: %s are read from %s", ext, what, from)
}

// IsArrow reports whether a file is one of Apache Arrow by its name. Such files are not read.
func IsArrow(file string) bool {
	return slices.Contains([]string{".arrow", ".feather", ".ipc"}, Extension(file))
}

// ArrowAdvice is the error of such a file.
const ArrowAdvice = `files of Apache Arrow are not read: write Parquet, by pandas.read_feather("FILE").to_parquet("FILE.parquet")`

// OpenItems opens a file of items; errors call it name. It is a *table.Table unless it is a .jsonl of whole
// items. The caller closes it.
func OpenItems(path, name string) (table.Items, error) {
	if Extension(path) == ".jsonl" {
		return opened(path, name, text.OpenItems)
	}
	return OpenTable(path, name)
}

// OpenTable opens a .jsonl, a .parquet or else a .csv as a table, whatever its columns are called. A .npy or
// .npz is a table of one column of vectors, which has the name of the member, or of the file without its
// extension.
func OpenTable(path, name string) (*table.Table, error) {
	file, _ := Cut(path)
	switch Extension(file) {
	case ".npy", ".npz":
		return openVectorsTable(path, name)
	case ".jsonl":
		return opened(path, name, text.OpenJSONLTable)
	case ".parquet":
		return opened(path, name, parquet.OpenItems)
	}
	return opened(path, name, text.OpenCSVTable)
}

// opened opens a file of a format.
func opened[R any](path, name string, format func(matrix.Source) (R, error)) (none R, _ error) {
	src, err := matrix.Open(path, name)
	if err != nil {
		return none, err
	}
	r, err := format(src)
	if err != nil {
		_ = src.Close() // nothing was written
		return none, err
	}
	return r, nil
}

// ReadAll reads a file of vectors as a whole. data holds rows*cols values, row after row, and belongs to the
// caller. It takes 4 bytes of memory a value, for at most 2^31.
func ReadAll(path string) (data []float32, rows, cols int, err error) {
	v, err := Open(path, path)
	if err != nil {
		return nil, 0, 0, err
	}
	defer v.Close()
	data, err = Rest(v)
	return data, v.Rows, v.Cols, err
}

// Rest reads all rows, of which none may have been read, as ReadAll does.
func Rest(v *Vectors) ([]float32, error) {
	if n := int64(v.Rows) * int64(v.Cols); n > maxValues {
		return nil, matrix.FileError(v.Name,
			fmt.Errorf("has %s values, of which %s at most are read at once: read it row by row",
				matrix.Thousands(n), matrix.Thousands(maxValues)))
	}
	data := make([]float32, v.Rows*v.Cols)
	for row := range slices.Chunk(data, v.Cols) {
		if err := v.Next(row); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// ReadLines reads a text file of keys or label names, one a line, in file order. A line ends with LF, CRLF or
// the end of the file. An empty line is an empty string, and other blanks are part of their line. Text that
// is not UTF-8, and a line of more than 1 MiB, give an *Error with the number of the line.
//
// The result takes the memory of the text and 16 bytes a line. The file may be a pipe.
func ReadLines(path string) ([]string, error) {
	f, err := openText(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readLines(path, f)
}

func readLines(name string, r io.Reader) (all []string, err error) {
	for l := text.NewLines(name, r, text.ShortLine); ; {
		line, err := l.NextText()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, string(line))
	}
}
