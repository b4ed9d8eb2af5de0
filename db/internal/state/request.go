package state

import (
	"context"
	"slices"

	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A Request is what one caller asks of the committer: changes, which share a commit with those
// of others, or an operation that it runs alone.
//
// The caller makes it and hands it to Committer.Submit; until that returns it belongs to the
// committer, with all that it points to.
type Request struct {
	kind    requestKind     // requestWrites, unless one of the functions below has made it
	Changes []*Change       // of requestWrites: applied in this order, all or none
	Marks   []record.Mark   // of requestWrites: stored with the changes
	run     func(*Tx) error // of the others
	bytes   int             // of requestStores: that the operation stores, about, where they may be many

	err  error         // the answer, set before done is closed
	done chan struct{} // made by Submit; closed when the request has been answered
}

// A requestKind says what a request may do to the store and to what readers see, and so what
// it has to wait for. Those up to requestFrees are committed by the Tx that they write to.
type requestKind byte

const (
	requestWrites requestKind = iota // changes of items, which share a commit with others
	requestStores                    // an operation in a commit of its own
	requestFrees                     // one that frees disk space later: less room has to be left for it
	requestLoads                     // one that hands the store whole tables, and asks for room itself, see CommitTables
	requestLooks                     // one that stores nothing, and changes nothing that readers see
	requestShows                     // one that stores nothing, and changes what readers see; possible when read-only
)

// commits reports whether the transaction of the operation is committed after it.
func (k requestKind) commits() bool { return k <= requestFrees }

// onlyDeletes reports whether all changes are deletions, which leave less than there was. The
// marks beside them are small.
func (r *Request) onlyDeletes() bool {
	return r.kind == requestWrites && len(r.Changes) > 0 && !slices.ContainsFunc(r.Changes, func(ch *Change) bool { return ch.Kind != DeleteItem })
}

// frees reports whether the request frees disk space, later.
func (r *Request) frees() bool { return r.kind == requestFrees || r.onlyDeletes() }

// Do runs f alone, in the committer, and commits what it writes: about so many bytes, which
// matters where they may be many, and else is 0. f changes what is in memory, writes to the
// Tx, and calls Touch. An error of f has to come before its first change, and is returned as
// it is; a panic fails the database. Where f sets Tx.Empty there is no commit. The commit is
// durable when Do returns, whatever Options.NoSync says, and readers see it. Until f returns
// no other request is taken up: a long f keeps all writers waiting.
func (c *Committer) Do(ctx context.Context, bytes int, f func(*Tx) error) error {
	return c.Submit(ctx, &Request{kind: requestStores, bytes: bytes, run: f})
}

// admitWrites asks whether the disk has room for the commit of so many bytes of writes, the last
// of them r. What is in flight may not be in the log yet, where the disk would count it.
func (c *Committer) admitWrites(bytes int, r *Request) error {
	return c.Admit(store.WrittenTwice*(int64(bytes)+c.aloftBytes.Load()), r.onlyDeletes())
}

// Free is Do for what frees disk space, such as dropping a space, which is possible on a disk
// that is full but for the last of the reserve.
func (c *Committer) Free(ctx context.Context, f func(*Tx) error) error {
	return c.Submit(ctx, &Request{kind: requestFrees, run: f})
}

// Load runs f alone, which commits by CommitTables, once or not at all. What f writes to the
// Tx is lost.
func (c *Committer) Load(ctx context.Context, f func(*Tx) error) error {
	return c.Submit(ctx, &Request{kind: requestLoads, run: f})
}

// Look runs f between two commits. It may read what only the committer knows, and change what
// is neither stored nor shown to readers, such as CollectionState.Changed.
func (c *Committer) Look(ctx context.Context, f func() error) error {
	return c.Submit(ctx, &Request{kind: requestLooks, run: func(*Tx) error { return f() }})
}

// Show runs f between two commits, and then publishes a view, so that readers see what f has
// changed (and has told Touch): what is in memory only, such as tables of codes. It is
// possible in a database that is read only.
func (c *Committer) Show(ctx context.Context, f func() error) error {
	return c.Submit(ctx, &Request{kind: requestShows, run: func(*Tx) error { return f() }})
}
