package db

import (
	"context"
	"errors"
	"log/slog"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// A bulkCommit says how items are stored.
type bulkCommit struct {
	bytes    int64                     // about those of the items
	promise  func(commit uint64) error // if not nil, hears which commit it will be, before it is
	withdraw func()                    // hears that it has not come about, after promise
	progress event.Progress            // may be nil: "encoding" and "storing", in items; 0 of 0 where the number is not known
}

// commit stores the items in one commit. It gives errNotBulk where they have to be stored
// one by one, because some of the items are there already, say; nothing has happened then.
func (k *bulk) commit(ctx context.Context, o bulkCommit) error {
	d := k.collection.DB
	ctx, op := d.Signals.Begin(ctx, event.OpBulkLoad, k.collection.Name)
	defer op.Abandon()
	err := k.load(ctx, o, op.Telling(o.progress))
	if errors.Is(err, errNotBulk) {
		op.End(nil, event.Event{Level: slog.LevelDebug, Attrs: []slog.Attr{slog.String("outcome", "one by one")}})
		return err
	}
	op.End(err, event.Event{Items: int64(k.n), Bytes: o.bytes})
	if err == nil {
		d.Committer.Figures.Put.Add(uint64(k.n))
	}
	return err
}

func (k *bulk) load(ctx context.Context, o bulkCommit, progress event.Progress) error {
	d := k.collection.DB
	if err := k.collection.Loaded(ctx); err != nil {
		return err
	}
	if err := d.Engine.Admit(o.bytes, false); err != nil { // before all that work
		return err
	}
	defer k.dropColumns()
	if err := k.encode(ctx, progress); err != nil {
		return err
	}
	progress("storing", 0, 0)
	return d.Committer.Load(ctx, func(tx *state.Tx) error {
		l := newBulkLoad(tx.Committer, k, o.bytes)
		if l == nil {
			return errNotBulk
		}
		l.tables.Promise, l.tables.Withdraw = o.promise, o.withdraw
		return l.run(ctx)
	})
}

// errNotBulk says that items have to be stored one by one.
var errNotBulk = errors.New("not a bulk load")
