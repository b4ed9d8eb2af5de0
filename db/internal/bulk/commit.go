package bulk

import (
	"context"
	"errors"
	"log/slog"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// Options say how Commit stores items.
type Options struct {
	Bytes int64 // estimate of what the items take; asked of the reserve, and told in events

	Marks []record.Mark // stored in the same commit

	// Promise, if not nil, is called with the number that the commit is going to have, after
	// the tables are durable and before the store takes them. An error of it ends the load.
	// Withdraw is called if the store has refused the tables after that. Both run in the
	// committer. Whether a promised commit has happened is in the store: an import that was
	// interrupted in between compares its commit sequence with the promised number.
	Promise  func(commit uint64) error
	Withdraw func() // may be nil

	Progress event.Progress // may be nil; stages "encoding", in items, and "storing", 0 of 0
}

// Commit stores the items in one commit, which is durable when it returns. It returns
// ErrNotBulk if they have to be stored one by one, for example because some of them are
// there already; then nothing has happened. With another error the database is as it was,
// or has failed (fault.ErrFailed). Once it has returned nil the items must not be added to
// or committed again; Keys tells their keys.
//
// It waits until the codes of the collection are in memory, encodes on all cores, and then
// keeps the committer busy, and other writers waiting, until the tables are stored.
func (k *Items) Commit(ctx context.Context, o Options) error {
	d := k.Collection.DB
	ctx, op := d.Signals.Begin(ctx, event.OpBulkLoad, k.Collection.Name)
	defer op.Abandon()
	err := k.load(ctx, o, op.Telling(o.Progress))
	if errors.Is(err, ErrNotBulk) {
		op.End(nil, event.Event{Level: slog.LevelDebug, Attrs: []slog.Attr{slog.String("outcome", "one by one")}})
		return err
	}
	op.End(err, event.Event{Items: int64(k.n), Bytes: o.Bytes})
	if err == nil {
		d.Committer.Figures.Put.Add(uint64(k.n))
	}
	return err
}

// load is Commit without the events.
func (k *Items) load(ctx context.Context, o Options, progress event.Progress) error {
	d := k.Collection.DB
	// Wait here, in the caller's goroutine: the committer must not wait for codes to load.
	if err := k.Collection.Loaded(ctx); err != nil {
		return err
	}
	if err := d.Engine.Admit(o.Bytes, false); err != nil { // CommitTables asks again, but encoding takes long
		return err
	}
	// Codes take a file or memory, which is free again whatever happens.
	defer k.dropColumns()
	if err := k.encode(ctx, progress); err != nil {
		return err
	}
	progress("storing", 0, 0)
	return d.Committer.Load(ctx, func(tx *state.Tx) error {
		// From here on this is the committer's goroutine, and no other request runs.
		l := newLoad(tx.Committer, k, o)
		if l == nil {
			return ErrNotBulk
		}
		l.tables.Promise, l.tables.Withdraw = o.Promise, o.Withdraw
		return l.run(ctx)
	})
}

// ErrNotBulk says that items cannot be stored as a load and have to be stored one by one.
// The caller does so; no user sees it.
var ErrNotBulk = errors.New("not a bulk load")
