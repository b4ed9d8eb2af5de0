package state

import (
	"context"
	"slices"

	"github.com/fddhdb/fddhdb/db/fault"
)

// A Request is what one caller asks of the committer: changes, which share a commit with those
// of others, or an operation that it runs alone.
type Request struct {
	kind    requestKind
	Changes []*Change       // of requestWrites
	run     func(*Tx) error // of the others
	bytes   int             // of RequestStores: that the operation stores, about, where they may be many

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
func (r *Request) onlyDeletes() bool {
	return r.kind == requestWrites && !slices.ContainsFunc(r.Changes, func(ch *Change) bool { return ch.Kind != DeleteItem })
}

// frees reports whether the request frees disk space, later.
func (r *Request) frees() bool { return r.kind == requestFrees || r.onlyDeletes() }

// Do runs f alone and commits what it writes, about so many bytes where that may be many.
// The commit is durable when do returns, whatever Options.NoSync says. An error of f has to
// come before its first change. Where f sets tx.empty there is no commit.
func (c *Committer) Do(ctx context.Context, bytes int, f func(*Tx) error) error {
	return c.Submit(ctx, &Request{kind: requestStores, bytes: bytes, run: f})
}

// Free is do for what frees disk space, which is possible on a full disk.
func (c *Committer) Free(ctx context.Context, f func(*Tx) error) error {
	return c.Submit(ctx, &Request{kind: requestFrees, run: f})
}

// Load runs f alone, which commits by commitTables.
func (c *Committer) Load(ctx context.Context, f func(*Tx) error) error {
	return c.Submit(ctx, &Request{kind: requestLoads, run: f})
}

// Look runs f between two commits. It may read and change what only the committer knows.
func (c *Committer) Look(ctx context.Context, f func() error) error {
	return c.Submit(ctx, &Request{kind: requestLooks, run: func(*Tx) error { return f() }})
}

// Show runs f between two commits, and shows readers what it has changed, of which nothing is
// stored: tables of codes in memory, say.
func (c *Committer) Show(ctx context.Context, f func() error) error {
	return c.Submit(ctx, &Request{kind: requestShows, run: func(*Tx) error { return f() }})
}

// Do is committer.do with the state of the collection.
func (c Collection) Do(ctx context.Context, bytes int, f func(tx *Tx, s *CollectionState) error) error {
	return c.DB.Committer.Do(ctx, bytes, func(tx *Tx) error {
		return c.withState(func(s *CollectionState) error { return f(tx, s) })
	})
}

// Free is committer.free with the state of the collection.
func (c Collection) Free(ctx context.Context, f func(tx *Tx, s *CollectionState) error) error {
	return c.DB.Committer.Free(ctx, func(tx *Tx) error {
		return c.withState(func(s *CollectionState) error { return f(tx, s) })
	})
}

// Load is committer.load with the state of the collection.
func (c Collection) Load(ctx context.Context, f func(tx *Tx, s *CollectionState) error) error {
	return c.DB.Committer.Load(ctx, func(tx *Tx) error {
		return c.withState(func(s *CollectionState) error { return f(tx, s) })
	})
}

// Look is committer.look with the state of the collection.
func (c Collection) Look(ctx context.Context, f func(s *CollectionState) error) error {
	return c.DB.Committer.Look(ctx, func() error { return c.withState(f) })
}

// Show is committer.show with the state of the collection.
func (c Collection) Show(ctx context.Context, f func(s *CollectionState) error) error {
	return c.DB.Committer.Show(ctx, func() error { return c.withState(f) })
}

// withState calls f, in the committer, with the state of the collection.
func (c Collection) withState(f func(s *CollectionState) error) error {
	s := c.DB.Committer.States[c.ID]
	if s == nil {
		return fault.NotFound("collection %q", c.Name)
	}
	return f(s)
}
