// Package mih searches binary codes exactly: all codes within a Hamming
// radius, or the nearest ones.
//
// It works on DISTINCT codes. Learned codes collapse to about one code a set of
// labels, so a [Table] numbers the distinct codes and keeps for each the rows
// (items) that carry it; a search finds code numbers, and their rows follow.
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
// Most codes are in segments, each with a table for every substring of a code
// ([Split]): multi-index hashing. A search looks up the substrings of the query,
// with growing numbers of bits flipped. Beside a code that it finds there stands the
// substring that makes up a pair with this one, which is enough to leave most of
// them alone; the others are compared with the query. Where so many lookups would be
// needed that reading all codes is cheaper, it does that: every segment has measured
// what both cost. New codes are in a tail that is always scanned; a [Build] makes a
// segment of them in the background.
//
// # Concurrency
//
// A [Writer] belongs to one goroutine. A [Table] that it has published never
// changes and is safe for any number of readers.
package mih
