// Package search answers one query from one view of a collection. New checks the query,
// evaluates its filter (filter.go) and encodes it (point.go). Nearest or Within finds
// codes, in memory or in the store (searcher.go). First, Hits, All and EachRun turn codes
// into items, in order (runs.go). order.go puts the items of one code in order by their projections,
// vectors_in_code.go by their vectors. A collection without a model has no codes: vectors.go answers by
// vectors alone.
//
// Codes are in the order of distance and then of -z.h, h being the code as +-1; or of the score
// z.h alone. Whole shells of distance, or whole ties of score, are found until k rows pass the
// filter. The rows of a code are in the order of the cosine between z and their stored
// projection, which is in memory (state.QuantView) or is read (stored_directions.go). While codes
// are being loaded they are read from the store (stored_codes.go).
//
// It is exact: no item outside an answer is nearer than one inside, whatever the plan
// (db/query_test.go and db/plans_test.go compare with a linear scan). The proof has two
// halves. Package mih returns all codes of each distance, or of each score, that it
// returns any of; so whatever it leaves out comes later in the order. And runs and rank
// sort codes, and the rows of a code, by a total order, which does not depend on the plan.
//
// Beside queries it reads what is stored as a caller wants it: items that match an expression,
// in one pass over the store (item_reader.go) or one by one (item.go), keys in order
// (item_keys.go), and codes (codes.go).
//
// It imports state only to read views, and knows nothing of the committer. The caller
// holds the view, with a reference, for as long as it uses a Searcher. A Searcher is for
// one goroutine; Again gives another one with the same answer. Tools are shared by all.
//
// The path of a hit has no interface call and no allocation of its own; First calls one function
// for each hit, which makes it the caller's.
package search
