package state

import (
	"context"
	"slices"

	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A Request is what one caller asks of the committer: either changes, which may share a commit with other
// requests, or an operation that runs alone. The caller hands it to Committer.Submit. Until Submit returns
// the committer owns it, with everything it points to.
type Request struct {
	kind    requestKind     // requestWrites, unless a function below made it
	Changes []*Change       // of requestWrites: applied in this order, all or none
	Marks   []record.Mark   // of requestWrites: stored with the changes
	run     func(*Tx) error // of the other kinds
	bytes   int             // of requestStores: bytes that the operation stores, roughly, if they may be many

	err  error         // the answer, set before done is closed
	done chan struct{} // made by Submit; closed when the request has been answered
}

// A requestKind says what a request may do to the store and to readers, and so what it waits for. The Tx
// commits what operations up to requestFrees write to it.
type requestKind byte

const (
	requestWrites requestKind = iota // changes of items, which share a commit with others
	requestStores                    // an operation in a commit of its own
	requestFrees                     // an operation that frees disk space later: less room has to be left for it
	requestLoads                     // an operation that gives the store whole tables, and asks for room itself, see CommitTables
	requestLooks                     // an operation that stores nothing and changes nothing visible
	requestShows                     // an operation that stores nothing and changes what readers see; allowed when read-only
)

// commits reports whether the transaction is committed after the operation.
func (k requestKind) commits() bool { return k <= requestFrees }

// onlyDeletes reports whether all changes are deletions, which reduce the data. Their marks are small.
func (r *Request) onlyDeletes() bool {
	return r.kind == requestWrites && len(r.Changes) > 0 && !slices.ContainsFunc(r.Changes, func(ch *Change) bool { return ch.Kind != DeleteItem })
}

// frees reports whether the request frees disk space, later.
func (r *Request) frees() bool { return r.kind == requestFrees || r.onlyDeletes() }

// Do runs f alone, in the committer, and commits its writes. bytes estimates them, and may be 0 if they are
// few. f changes memory, writes to the Tx, and calls Touch. f must fail before its first change; Do returns
// that error unchanged. A panic fails the database. If f sets Tx.Empty, there is no commit. When Do returns,
// the commit is visible and durable, whatever Options.NoSync says. A long f keeps all writers waiting.
func (c *Committer) Do(ctx context.Context, bytes int, f func(*Tx) error) error {
	return c.Submit(ctx, &Request{kind: requestStores, bytes: bytes, run: f})
}

// admitWrites asks whether the disk has room for a commit of so many bytes of writes, r the last of them. It
// adds the bytes in flight, which the log on disk may not include yet.
func (c *Committer) admitWrites(bytes int, r *Request) error {
	return c.Admit(store.WrittenTwice*(int64(bytes)+c.aloftBytes.Load()), r.onlyDeletes())
}

// Free is Do for operations that free disk space, such as dropping a space. They are allowed on a full
// disk with only the last of the reserve left.
func (c *Committer) Free(ctx context.Context, f func(*Tx) error) error {
	return c.Submit(ctx, &Request{kind: requestFrees, run: f})
}

// Load runs f alone. f commits by CommitTables, once or not at all; its writes to the Tx are lost.
func (c *Committer) Load(ctx context.Context, f func(*Tx) error) error {
	return c.Submit(ctx, &Request{kind: requestLoads, run: f})
}

// Look runs f between two commits. f may read the committer's own state, and change state that is neither
// stored nor visible, such as CollectionState.Changed.
func (c *Committer) Look(ctx context.Context, f func() error) error {
	return c.Submit(ctx, &Request{kind: requestLooks, run: func(*Tx) error { return f() }})
}

// Show runs f between two commits and then publishes a view, so that readers see the changes of f (with
// Touch) to memory alone, such as tables of codes. It is allowed in a read-only database.
func (c *Committer) Show(ctx context.Context, f func() error) error {
	return c.Submit(ctx, &Request{kind: requestShows, run: func(*Tx) error { return f() }})
}
