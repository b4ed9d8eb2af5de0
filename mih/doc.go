// Package mih searches binary codes exactly, by multi-index hashing: all codes within a
// Hamming radius, the nearest codes, or the codes with the best scores.
//
// It works on DISTINCT codes. Learned codes collapse to about one code a set of labels,
// so a [Table] numbers the distinct codes and keeps the rows (items) that carry each of
// them. A search finds code numbers; their rows follow.
//
//	w := mih.NewWriter(128)
//	n, _, err := w.Number(code) // number of the code, new or old
//	w.Add(n, row)               // row now carries it
//	t := w.Publish()            // immutable
//	within, err := t.Radius(ctx, &mih.Query{Code: query}, 8, nil, nil)
//	nearest, err := t.Nearest(ctx, &mih.Query{Code: query}, 10, nil, nil)
//
// # How a search works
//
// Most codes are in segments. A segment has a hash table for each substring of its
// codes ([Split]). A search looks up the substrings of the query, first as they are,
// then with more and more bits flipped. An entry of a table leads to a code, and has the
// other substring of a pair beside it. That substring alone rules most entries out; the
// remaining codes are compared with the query. Every segment has measured what lookups
// and a scan cost, so a search reads all codes wherever that is cheaper. New codes are in
// a tail that every search scans; a [Build] makes a segment of them in the background.
//
// A k-NN search that may leave results out reads cells: groups of codes around a centre,
// of which a sample has told how many hold what share of the nearest codes ([Query.Recall]).
// Codes of more than 512 bits have cells and no tables.
//
// [Stored] searches codes that are not in memory, by the same principle, over a
// [Store]. A [Join] finds all pairs of codes that are near each other.
//
// # Imports and concurrency
//
// The package imports codec and roaring. It starts goroutines only inside [Build.Run],
// [Writer.Load] and [Join.Run], which wait for them. It has no lock: a [Writer] belongs to one
// goroutine, and a published [Table] never changes, so any number of goroutines may
// read it.
//
// # Invariants
//
//   - Every plan gives the answer of the definition: TestTablesAgreeWithTheDefinition,
//     TestAllSplitsAgreeWithTheDefinition, TestBestAgreesWithTheDefinition,
//     TestStoredAgreesWithTheDefinition, TestScansAmongDeadCodes,
//     TestJoinAgreesWithTheDefinition.
//   - A search by cells finds the share that it is asked for: TestCellsHaveTheRecall.
//   - A published table never changes: TestPublishedTablesNeverChange.
//   - Builds keep the segments few and give memory back: TestBuildsComeDue,
//     TestCodesThatGoTakeNoMemory.
//
// The proofs stand where they are used: at rings and lookups for what has been found so
// far, at collector.done and ranking for when a search may stop, at selection for a scan
// that counts codes instead of rows.
package mih
