// Package files reads and writes the files that go in and out of the database:
// matrices of vectors, matrices of packed codes, labels, and lists of keys.
//
// Rows are items everywhere. A matrix is read through a Reader, row by row and
// as float32 whatever the file holds, or as a whole with ReadAll:
//
//	r, err := files.Open("image.npy")
//	if err != nil {
//		return err
//	}
//	defer r.Close()
//	x := make([]float32, r.Cols())
//	for {
//		err := r.Next(x)
//		if err == io.EOF {
//			break
//		}
//		if err != nil {
//			return err // "image.npy: row 17, column 3: NaN is not ..."
//		}
//		use(x)
//	}
//
// # Formats
//
//	vectors  .npy   versions 1.0, 2.0 and 3.0; float16, float32, float64, every
//	                integer type and bool; both byte orders, C and Fortran order,
//	                one dimension (one row) and two
//	         .npz   a member that is such a .npy, in C order: FILE.npz:NAME; or a
//	                sparse matrix of scipy.sparse.save_npz in csr form, compressed
//	                or not: see SparseReader
//	         .csv   numbers separated by commas, with or without a header line
//	         .jsonl an array of numbers a line, or a sparse vector
//	                {"i":[3,17],"v":[1.5,2]}, of columns and their numbers; or
//	                objects with such a member: FILE.jsonl:NAME
//	         .mat   MATLAB version 5, which save -v6 and -v7 write, not HDF5 (-v7.3):
//	                a matrix of any class of numbers, or a sparse one, compressed or
//	                not, in either byte order: FILE.mat:NAME
//	codes    .npy   uint8, n x bits/8, bit j of a code being bit j mod 8 of byte j/8
//	labels   .npy, .npz, .mat, .csv
//	                a 0/1 matrix, or a vector of class numbers
//	         text   one line an item, labels separated by commas
//	keys     text   one line each
//
// Text is UTF-8; a byte order mark at its start and CRLF line ends are accepted. A
// Writer writes .npy version 1.0, and WriteAll a whole .npy file. An NPZWriter writes a
// .npz of one matrix, a CSRWriter a sparse .npz, and a MATWriter and a MATSparseWriter
// .mat. AppendCSV and AppendJSON write rows of text. Package parquet does the same
// for .parquet, and package table for files of whole items.
//
// # Untrusted bytes
//
// A file may come from anywhere. Claims of its header are checked against its size
// before anything is allocated, and no decoder panics. A reader allocates a small
// multiple of the file, or of one row if it streams, as it does with everything
// compressed. The fuzz tests check both (bounded in fuzz_test.go). A row has at most
// 1,048,576 columns, and no more numbers than columns. NaN, infinities and values
// beyond float32 are refused. Errors about a file are of type *Error, which carries the
// place.
//
// # Imports and concurrency
//
// The package imports codec and files/internal/jsontext. It starts no goroutine and has
// no lock: a Reader or Writer belongs to one goroutine at a time. Functions may be
// called from any goroutine.
//
// # Caveats
//
// A file must not change while it is read. A reader of vectors needs a regular file,
// not a pipe, because it checks the size first and reads text twice. The first line of
// a .csv is a header if none of its fields is a number, and a line with numbers and
// other fields is an error. So a first row without any number, NA in all columns, is taken
// for a header: compare Rows.
package files
