// Package mih searches binary codes exactly: all codes within a Hamming
// radius, or the nearest ones.
//
// It works on DISTINCT codes. Learned codes collapse to about one code a set of
// labels, so a [Table] numbers the distinct codes and keeps for each the rows
// (items) that carry it; a search finds code numbers, and their rows follow.
//
//	w := mih.NewWriter(128, 0)
//	n, _ := w.Number(code)      // number of the code, new or old
//	w.Add(n, row)               // row now carries it
//	t := w.Publish()            // immutable
//	s := mih.NewScan(t)
//	found, err := s.Radius(ctx, query, 8, nil)
//	nearest, err := s.Nearest(ctx, query, 10, t.Cardinality)
//
// [Index] is what every way of searching offers. [Scan] reads all codes; it is
// exact by construction and what cleverer indexes are compared with.
//
// # Concurrency
//
// A [Writer] belongs to one goroutine. A [Table] that it has published never
// changes and is safe for any number of readers, as is an [Index] over it.
package mih
