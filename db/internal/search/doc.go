// Package search answers one query from one view of a collection. New checks the query, evaluates its filter
// (filter.go) and encodes it. Nearest or Within finds codes, in memory or in the store (searcher.go). First,
// Hits and EachRun turn codes into items, in order (runs.go), which orders the items of one code by their
// projections; vectors.go orders them by their vectors. A collection without a model has no codes:
// vectors.go answers by vectors alone, and cells.go by an index of them.
//
// Codes are ordered by distance and then by -z.h, where h is the code as +-1; or by the score z.h alone. A
// search finds whole shells of distance, or whole ties of score, until k rows pass the filter. The rows of a
// code are ordered by the cosine between z and their stored projections, which are in memory
// (state.QuantView) or are read (stored.go). While codes are being loaded, searches read them from the store.
//
// A search by codes is exact under every plan: no item outside an answer is nearer than an item inside
// (db/plans_test.go and test/metamorphic check that). The proof has two halves. Package mih returns a
// distance, or a score, with all its codes, so every code that it leaves out comes later in the order. And
// runs and rank sort codes, and the rows of a code, by a total order that does not depend on the plan.
//
// The package also reads stored data: items that match an expression, in one pass over the store
// or one by one, and keys in order (item.go).
//
// It imports state only to read views, and does not use the committer. The caller holds a reference to the
// view while it uses a Searcher. A Searcher is for one goroutine; Again returns another one with the same
// answer. All searches share the Tools.
//
// The path of a hit has no interface call and no allocation of its own; First calls one function for each
// hit, which makes the caller's form of it.
package search
