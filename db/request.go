package db

import (
	"context"
	"slices"

	"github.com/fddhdb/fddhdb/db/fault"
)

// A request is what one caller asks of the committer: changes, which share a commit with those
// of others, or an operation that it runs alone.
type request struct {
	kind    requestKind
	changes []*change       // of requestWrites
	run     func(*tx) error // of the others
	bytes   int             // of requestStores: that the operation stores, about, where they may be many

	err  error
	done chan struct{}
}

// A requestKind says what a request may do to the store and to what readers see, and so what
// it has to wait for.
type requestKind byte

const (
	requestWrites requestKind = iota // changes
	requestStores                    // an operation in a commit of its own
	requestFrees                     // one that frees disk space later: less room has to be left for it
	requestLoads                     // one that hands the store whole tables, and asks for room itself, see commitTables
	requestLooks                     // one that stores nothing, and changes nothing that readers see
	requestShows                     // one that stores nothing, and changes what readers see
)

// commits reports whether the transaction of the operation is committed after it.
func (k requestKind) commits() bool { return k <= requestFrees }

// onlyDeletes reports whether a list of changes leaves less than there was.
func (r *request) onlyDeletes() bool {
	return r.kind == requestWrites && !slices.ContainsFunc(r.changes, func(ch *change) bool { return ch.kind != deleteItem })
}

// frees reports whether the request frees disk space, later.
func (r *request) frees() bool { return r.kind == requestFrees || r.onlyDeletes() }

// do runs f alone and commits what it writes, about so many bytes where that may be many.
// The commit is durable when do returns, whatever Options.NoSync says. An error of f has to
// come before its first change. Where f sets tx.empty there is no commit.
func (c *committer) do(ctx context.Context, bytes int, f func(*tx) error) error {
	return c.submit(ctx, &request{kind: requestStores, bytes: bytes, run: f})
}

// free is do for what frees disk space, which is possible on a full disk.
func (c *committer) free(ctx context.Context, f func(*tx) error) error {
	return c.submit(ctx, &request{kind: requestFrees, run: f})
}

// load runs f alone, which commits by commitTables.
func (c *committer) load(ctx context.Context, f func(*tx) error) error {
	return c.submit(ctx, &request{kind: requestLoads, run: f})
}

// look runs f between two commits. It may read and change what only the committer knows.
func (c *committer) look(ctx context.Context, f func() error) error {
	return c.submit(ctx, &request{kind: requestLooks, run: func(*tx) error { return f() }})
}

// show runs f between two commits, and shows readers what it has changed, of which nothing is
// stored: tables of codes in memory, say.
func (c *committer) show(ctx context.Context, f func() error) error {
	return c.submit(ctx, &request{kind: requestShows, run: func(*tx) error { return f() }})
}

// do is committer.do with the state of the collection.
func (c collection) do(ctx context.Context, bytes int, f func(tx *tx, s *collectionState) error) error {
	return c.db.committer.do(ctx, bytes, func(tx *tx) error {
		return c.withState(func(s *collectionState) error { return f(tx, s) })
	})
}

// free is committer.free with the state of the collection.
func (c collection) free(ctx context.Context, f func(tx *tx, s *collectionState) error) error {
	return c.db.committer.free(ctx, func(tx *tx) error {
		return c.withState(func(s *collectionState) error { return f(tx, s) })
	})
}

// load is committer.load with the state of the collection.
func (c collection) load(ctx context.Context, f func(tx *tx, s *collectionState) error) error {
	return c.db.committer.load(ctx, func(tx *tx) error {
		return c.withState(func(s *collectionState) error { return f(tx, s) })
	})
}

// look is committer.look with the state of the collection.
func (c collection) look(ctx context.Context, f func(s *collectionState) error) error {
	return c.db.committer.look(ctx, func() error { return c.withState(f) })
}

// show is committer.show with the state of the collection.
func (c collection) show(ctx context.Context, f func(s *collectionState) error) error {
	return c.db.committer.show(ctx, func() error { return c.withState(f) })
}

// withState calls f, in the committer, with the state of the collection.
func (c collection) withState(f func(s *collectionState) error) error {
	s := c.db.committer.states[c.id]
	if s == nil {
		return fault.NotFound("collection %q", c.name)
	}
	return f(s)
}
