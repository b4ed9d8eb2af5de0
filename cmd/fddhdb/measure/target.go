package measure

import (
	"context"
	"iter"

	"github.com/fddhdb/fddhdb/db"
)

// A Target is the collection that bench measures.
type Target interface {
	// Settle waits until no index is being built in the background. So measurements do
	// not show a process that has just started.
	Settle(ctx context.Context) error

	// Each calls f with every item that has a code, in ascending order of rows. The
	// code has bits/8 bytes and is valid until f returns.
	Each(ctx context.Context, f func(row uint32, key string, code []byte) error) error

	// Encode returns the code of a query, and its projection, nil for a query by code.
	Encode(ctx context.Context, q db.Query) (code []byte, z []float64, err error)

	// Projections calls f with the key of every item that has vectors, and the sum of
	// their projections.
	Projections(ctx context.Context, f func(key string, z []float64) error) error

	// Explain answers a query as a search does, and tells how.
	Explain(ctx context.Context, q db.Query) (*db.Explain, *db.Result, error)

	// Items returns the number of items that the answer to a query by vector is chosen from.
	Items(ctx context.Context, q db.Query) (int, error)

	// Item returns an item.
	Item(ctx context.Context, key string) (*db.Item, error)

	// Tier returns the searches by one plan, by its name in --tier.
	Tier(name string) Tier
}

// A Tier searches by one plan.
type Tier interface {
	Search(ctx context.Context, q db.Query) (*db.Result, error) // the first q.K items, with keys
	Radius(ctx context.Context, q db.Query, r int) (Runs, error)
	Count(ctx context.Context, q db.Query, r int) (int, error)

	// Parts runs an operation again and returns the parts of its time.
	Parts(ctx context.Context, q *Query, op Op) (Parts, error)
}

// Runs are the items within a radius, nearest first.
type Runs interface {
	Total() int
	Hits(ctx context.Context) iter.Seq2[db.Hit, error] // all of them, ignoring Query.K
	Close() error
}

// FullScan is the tier of the yardstick, which is no plan of the database.
const FullScan = "fullscan"

// Tiers are the names for --tier.
var Tiers = []string{"auto", FullScan, "scan", "memory", "disk", "blockscan"}

// A Query is a query with its code and its projection.
type Query struct {
	db.Query
	Encoded    []byte
	Projection []float64 // nil for a query by code
}
