// Package quant keeps vectors of 8 bits a dimension in memory, by row, and multiplies them
// with a query.
//
// A [Table] is one state of the vectors. It never changes, and shares with the states before
// and after it the pages that are the same. One [Writer] makes these states. A table knows the
// vectors of the first rows only, up to Covered: those of later rows have to be read elsewhere.
// So a table can be smaller than what it stands for: while it is loaded, and where memory has
// a bound.
//
// A [Query] is a vector of 16 bits a dimension. Its products with vectors are sums of whole
// numbers, so that a similarity is the same on every machine, and by every kernel, to the last
// bit. All similarities of a database come from here: those of vectors in memory and those of
// vectors that have just been read from the store.
//
// Rows stand by their number, not by their code. That costs a cache miss for each vector of a
// code, which the kernels hide by fetching ahead, and saves all else: nothing is sorted or
// merged when codes change, a write touches one page, and a filter of rows is a filter of
// vectors.
//
// Invariants and their tests: a published table never changes, TestPublishedTablesNeverChange;
// a table that is loaded while rows change has what the rows have, TestLoadingMeetsWrites;
// kernels agree, TestKernelsAgree.
package quant
