// Package parquet reads and writes .parquet files of vectors and whole items. Package files opens them by
// name; programs use what writes.
//
// # Format
//
// A dense vector is a list of numbers: float16, float32, float64, or integers with or without a sign. A
// sparse one is a structure of two lists: i, the columns of its numbers, and v, the numbers. Lists may be
// written in any of Parquet's ways, of any length or of a fixed one. OpenItems opens a file of items, whose
// caller says what each column becomes.
//
// It reads pages of version 1 and 2, in every encoding but the outdated BIT_PACKED, compressed by snappy,
// gzip, brotli, zstd or LZ4_RAW. It does not read encrypted files, files with their data in other files, nor
// columns of other types: decimals, dates, times, maps, lists of lists.
//
// It writes with github.com/parquet-go/parquet-go, compressed by snappy, in row groups of about 64 MiB. For
// reading it uses only the types of the metadata and the Thrift decoder of that library.
//
// # Why pages are decoded here
//
// Memory is the reason, not speed: version 0.32 of parquet-go reads at 0.9 to 1.4 times our speed. But its
// decoders trust the lengths and counts inside a page, which the header of the page does not show: a page of
// snappy makes them allocate 4 GiB in a file of 141 bytes, a run of levels 9 GiB in 167 bytes, and a damaged
// page of LZ4 ends the process, out of memory. Our decoders take at most 5 MiB for each of these files. To
// check all of this before the library reads a page takes our decompression and a walk through every run,
// which is much of the code here.
//
// # Untrusted bytes
//
// A file may come from anywhere. No decoder panics (FuzzPage). All columns that are read together take at
// most 1 GiB for their pages at any time, a page at most 256 MiB, whatever the file says (TestFilesThatLie).
// The metadata has at most 32 MiB, and a malicious one takes up to 64 times that. A good file takes a page of
// each of its columns: a few MiB with most writers, and about 150 MiB for a column of vectors if the writer
// makes one page a row group. Errors about a file are of type *matrix.Error. Checksums of pages are verified
// if there are any.
//
// The package starts no goroutine: a reader or writer belongs to one goroutine at a time.
package parquet
