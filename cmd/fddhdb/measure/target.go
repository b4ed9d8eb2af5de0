package measure

import (
	"context"
	"iter"

	"github.com/fddhdb/fddhdb/db"
)

// A Target is the collection that bench measures.
type Target interface {
	// Settle returns when no index is being built in the background: what is
	// measured afterwards is not what a process that has just started shows.
	Settle(ctx context.Context) error

	// Each calls f with every item that has a code, rows ascending. The code has
	// bits/8 bytes and is f's until it returns.
	Each(ctx context.Context, f func(row uint32, key string, code []byte) error) error

	// Code returns the code that a search encodes a query to.
	Code(ctx context.Context, q db.Query) ([]byte, error)

	// Tier returns the searches by one plan, under its name in --tier.
	Tier(name string) Tier
}

// A Tier searches by one plan.
type Tier interface {
	Search(ctx context.Context, q db.Query) ([]db.Hit, error) // the q.K nearest, with keys
	Radius(ctx context.Context, q db.Query, r int) (Runs, error)
	Count(ctx context.Context, q db.Query, r int) (int, error)

	// Parts does an operation once more and returns how its time is spent.
	Parts(ctx context.Context, q *Query, op Op) (Parts, error)
}

// Runs are the items within a radius, nearest first.
type Runs interface {
	Total() int
	Hits(ctx context.Context) iter.Seq2[db.Hit, error] // all of them, whatever Query.K is
	Close() error
}

// FullScan is the tier that is no plan of the database but the yardstick.
const FullScan = "fullscan"

// Tiers are the names that --tier takes.
var Tiers = []string{"auto", FullScan, "scan", "memory", "disk", "blockscan"}

// A Query is a query and the code that it is encoded to.
type Query struct {
	db.Query
	Encoded []byte
}
