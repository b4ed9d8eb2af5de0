package command

import (
	"context"
	"iter"

	"github.com/fddhdb/fddhdb/db"
)

// A benchTarget is the collection that bench measures.
type benchTarget interface {
	// settle returns when no index is being built in the background: what is
	// measured afterwards is not what a process that has just started shows.
	settle(ctx context.Context) error

	// each calls f with every item that has a code, rows ascending. The code has
	// bits/8 bytes and is f's until it returns.
	each(ctx context.Context, f func(row uint32, key string, code []byte) error) error

	// code returns the code that a search encodes a query to.
	code(ctx context.Context, q db.Query) ([]byte, error)

	// tier returns the searches by one plan, under its name in --tier.
	tier(name string) benchTier
}

// A benchTier searches by one plan.
type benchTier interface {
	search(ctx context.Context, q db.Query) ([]db.Hit, error) // the q.K nearest, with keys
	radius(ctx context.Context, q db.Query, r int) (benchRuns, error)
	count(ctx context.Context, q db.Query, r int) (int, error)

	// parts does an operation once more and returns how its time is spent.
	parts(ctx context.Context, q *benchQuery, op benchOp) (benchParts, error)
}

// benchRuns are the items within a radius, nearest first.
type benchRuns interface {
	Total() int
	Hits(ctx context.Context) iter.Seq2[db.Hit, error] // all of them, whatever Query.K is
	Close() error
}

// fullScanTier is the tier that is no plan of the database but the yardstick.
const fullScanTier = "fullscan"

// benchTiers are the names that --tier takes.
var benchTiers = []string{"auto", fullScanTier, "scan", "memory", "disk", "blockscan"}

// A benchQuery is a query and the code that it is encoded to.
type benchQuery struct {
	db.Query
	code []byte
}
