// Package parquetfile reads and writes vectors and whole items as .parquet files, as
// packages vecfile and itemfile do in other formats.
//
//	r, err := parquetfile.OpenVectors("items.parquet:image")
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
//			return err // "items.parquet:image: row 17, column 0: the vector is null: ..."
//		}
//		use(x)
//	}
//
// # Format
//
// A dense vector is a list of numbers: float16, float32, float64, or integers with or
// without a sign. A sparse one is a structure of two lists, i, the columns of its numbers,
// and v, the numbers. Lists may be written in any of the ways that there are, of any length
// or of one. Of a file of items, OpenItems says which column is what.
//
// Pages of version 1 and 2 are read, in every encoding but the outdated BIT_PACKED,
// compressed by snappy, gzip, brotli, zstd or LZ4_RAW. Encrypted files are not, nor those
// that have their data in other files, nor columns of other types: decimals, dates, times,
// maps, lists of lists.
//
// What is written is compressed by snappy, in row groups of some 64 MiB, by
// github.com/parquet-go/parquet-go. Of that library, reading uses the metadata only: its
// decoders believe the runs, lengths and counts inside a page, too, and take gigabytes for
// one of some bytes. Neither limits for the headers of pages nor recover would help.
//
// # Untrusted bytes
//
// A file may come from anywhere: no decoder panics, and what pages need at one time, of
// all columns that are read together, is at most 1 GiB, whatever the file says, a page at
// most 256 MiB; the metadata has at most 32 MiB, and takes up to 64 times that if it is
// made to. A good file takes what a page of each of its columns needs, some MiB with most
// writers, and some 150 MiB a column of vectors with those that write a page a row group.
// Errors about a file are of type *vecfile.Error. Checksums of pages are checked where
// they are there.
//
// # Concurrency
//
// A Reader or Writer is for one goroutine at a time.
package parquetfile
