// Package search answers one query from one state of a collection: it filters, chooses a plan,
// finds codes, and puts the items of these in order.
//
// A search goes in four steps. It encodes its vector to z and its signs, or takes the code or
// the item that it is given (point.go). It finds the nearest distinct codes: whole shells of
// distance, or whole ties of score, until k rows pass the filter (searcher.go, order.go). It
// orders codes by distance and then by -z.h, and the rows of a code by the cosine between z
// and their stored projection (runs.go). Last it looks up the keys of the hits (keys.go). While
// codes are being loaded, the second step reads the store instead (stored_codes.go).
//
// It is exact: no item outside an answer is nearer than one inside, by every plan
// (db/query_test.go and db/plans_test.go compare with a linear scan). It reads a View and
// knows nothing of what changes one. A Searcher is for one goroutine; Again gives another.
//
// The path of a hit has no interface call and no allocation of its own.
package search
