// Package cells is an index of vectors: it finds which of many are likely to be near a query.
//
// Each vector is in the cell of the nearest of some centres (Train), and has a code of a bit a dimension for
// its position relative to the centre (Entry). A Table has the entries cell by cell. A query looks into the
// most promising cells (Probes). There it estimates its distance from an entry in about two nanoseconds, with
// a known error (Table.Scan). The caller compares the vectors that may be among the nearest, and reports the
// distance of the k-th. The query ends when no cell promises anything nearer.
//
// The number of visited cells follows from the data, from k and from a filter by itself, because all of these
// only change the distance of the k-th. The caller chooses only the reach, which scales the promise of a
// cell, and measures its recall.
//
// Codes are RaBitQ codes (Gao and Long, SIGMOD 2024), with the query at 4 bits a dimension. Centres have such
// codes themselves, around their mean, so that few of them are multiplied with a query.
//
// Scans and products are in assembly for AVX-512, AVX2 and NEON, and in Go for all other machines, with
// the same results to the last bit.
//
// A Writer makes the states of a table, which share their unchanged parts. A published state never changes
// and is safe for any number of goroutines. Nothing here reads or stores anything. Entries have a stored
// form, the same on every machine.
//
// Invariants and their tests: a published table never changes, and has the entries that were put,
// TestTablesAreWhatWasPut; kernels agree, TestKernelsAgree; estimates have no bias and the stated error,
// TestEstimates; entries never change, TestEntriesArePinned.
package cells
