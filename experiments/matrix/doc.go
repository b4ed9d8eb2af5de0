// Package matrix measures searches over the codes of package synth, and makes tables and figures of the
// results:
//
//	experiments matrix run --out results.jsonl
//	experiments matrix tables --in results.jsonl
//	experiments matrix plots --in results.jsonl --dir docs/bench
//	experiments matrix codes --sets S --bits 128 --items 1000000 --dir /tmp
//
// Run makes each set, imports it into a new database as fddhdb import does, and searches it with three kinds
// of queries: perturbed members of the set, fresh codes of its distribution, and both in turn. Then it
// deletes the database. It does not measure again what the file of results has, so an interrupted run
// continues where it was. One goroutine searches.
//
// A search is one of
//
//   - knn: the k nearest items with their keys
//   - radius: all items within a radius, without looking at each
//   - hits: the same, and the first 100 of them with their keys
//
// by a plan of the database, or by fullscan, the yardstick: every word of the codes of all items, one after
// the other. It finds rows, not keys.
//
// The file of results has one JSON object a line: set, bits, n and kind, and the figures of a search. A line
// whose op is "store" says what it took to import and store the set.
//
// TestRun proves that an interrupted run is continued and measures nothing twice, TestFullScan that the
// yardstick reads every code.
package matrix
