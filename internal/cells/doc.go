// Package cells has an index of vectors: which of many are likely to be near to a query.
//
// Vectors are put into cells, each with the nearest of some centres (Train), and get a code of a bit a
// dimension for where they lie from it (Entry). A Table has the entries cell by cell. A query looks
// into the most promising cells (Probes), where its distance from an entry is estimated in about two
// nanoseconds, with a known error (Table.Scan). What may be among the nearest its caller compares by
// the vectors themselves, and says how near the k-th is; so it ends when no cell promises as much.
//
// The number of cells looked into follows from the data, from k and from a filter by itself, as all of
// these only change how near the k-th is. What is chosen is how much a cell is believed to promise
// (reach), which the caller measures.
//
// Codes are those of RaBitQ (Gao and Long, SIGMOD 2024), with the query at 4 bits a dimension. Centres
// have such codes themselves, around their mean, so that few of them are multiplied with a query.
//
// Scans and products are in assembly for AVX-512, AVX2 and NEON, and in Go for all other machines, with
// the same results to the last bit.
//
// A Writer makes the states of a table, which share what has not changed. A published one never changes
// and is safe for any number of goroutines. Nothing here reads or stores anything; entries have a form
// to be stored in, which is the same on every machine.
//
// Invariants and their tests: a published table never changes, and has what was put,
// TestTablesAreWhatWasPut; kernels agree, TestKernelsAgree; estimates have no bias and the error that
// they say, TestEstimates; entries never change, TestEntriesArePinned.
package cells
