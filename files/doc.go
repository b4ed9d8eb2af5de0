// Package files reads the files that go in and out of the database: vectors, labels, lists of keys, whole
// items and tables.
//
// Rows are items everywhere. A file of vectors is read row by row and as float32 whatever it holds, or as a
// whole with ReadAll:
//
//	v, err := files.Open("image.npy", "image.npy")
//	if err != nil {
//		return err
//	}
//	defer v.Close()
//	x := make([]float32, v.Cols)
//	for {
//		err := v.Next(x)
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
//	vectors  .npy   versions 1.0, 2.0 and 3.0; float16, float32, float64, every integer type and bool; both byte
//	                orders, C and Fortran order, one dimension (one row) and two
//	         .npz   a member that is such a .npy, in C order: FILE.npz:NAME; or a sparse matrix of
//	                scipy.sparse.save_npz in csr form, compressed or not
//	         .csv   numbers separated by commas, semicolons or tabs, with or without a header
//	         .jsonl an array of numbers a line, or a sparse vector {"i":[3,17],"v":[1.5,2]}, of columns and their
//	                numbers; or objects with such a member: FILE.jsonl:NAME
//	         .mat   MATLAB version 5, which save -v6 and -v7 write, not HDF5 (-v7.3): a matrix of any class of
//	                numbers, or a sparse one, compressed or not, in either byte order: FILE.mat:NAME
//	        .parquet
//	                a column of lists of numbers, or of sparse vectors: FILE.parquet:NAME
//	labels   .npy, .npz, .mat, .csv
//	                a 0/1 matrix, or a vector of class numbers
//	         text   one line an item, labels separated by commas
//	keys     text   one line each
//	items    .jsonl, .csv, .parquet
//	                whole items, or a table whose columns have names of its own: see package table
//	         .npy, .npz
//	                vectors alone
//
// .ndjson and .json are .jsonl, and .tsv is .csv. A .jsonl may be one array, whose elements are the lines.
// Any file may be compressed: .csv.gz or .csv.zst.
//
// Package npy writes .npy and .npz, and reads codes. Package parquet writes .parquet.
//
// # Untrusted bytes
//
// A file may come from anywhere. Claims of its header are checked against its size before anything is
// allocated, and no decoder panics. A reader allocates a small multiple of the file, or of one row if it
// streams, as it does with everything compressed. The fuzz tests check both (bounded in fuzz_test.go). A row
// has at most 1,048,576 columns, and no more numbers than columns. NaN, infinities and values beyond float32
// are refused. Errors about a file are of type *Error, which carries the place.
//
// # Imports and concurrency
//
// The packages below know no database. They start no goroutine and have no lock: a reader belongs to one
// goroutine at a time. A file must not change while it is read. It must be a regular file, not a pipe, but
// for keys and labels of text, because its size is checked first and text is read twice.
package files
