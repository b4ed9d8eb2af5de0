// Package search answers one query from one state of a collection: it filters, chooses a plan,
// finds codes, and puts the items of these in order.
//
// It is exact: no item outside an answer is nearer than one inside, by every plan
// (db/query_test.go and db/plans_test.go compare with a linear scan). It reads a View and
// knows nothing of what changes one. A Searcher is for one goroutine; Again gives another.
//
// The path of a hit has no interface call and no allocation of its own.
package search
