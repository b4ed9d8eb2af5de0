package bulk

import (
	"context"
	"errors"
	"log/slog"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// Options say how items are stored.
type Options struct {
	Bytes    int64                     // that the items take, about
	Promise  func(commit uint64) error // if not nil, hears which commit it will be, before it is
	Withdraw func()                    // hears that it has not come about, after promise
	Progress event.Progress            // may be nil: "encoding" and "storing", in items; 0 of 0 where the number is not known
}

// Commit stores the items in one commit. It gives ErrNotBulk where they have to be stored
// one by one, because some of the items are there already, say; nothing has happened then.
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

func (k *Items) load(ctx context.Context, o Options, progress event.Progress) error {
	d := k.Collection.DB
	if err := k.Collection.Loaded(ctx); err != nil {
		return err
	}
	if err := d.Engine.Admit(o.Bytes, false); err != nil { // before all that work
		return err
	}
	defer k.dropColumns()
	if err := k.encode(ctx, progress); err != nil {
		return err
	}
	progress("storing", 0, 0)
	return d.Committer.Load(ctx, func(tx *state.Tx) error {
		l := newLoad(tx.Committer, k, o.Bytes)
		if l == nil {
			return ErrNotBulk
		}
		l.tables.Promise, l.tables.Withdraw = o.Promise, o.Withdraw
		return l.run(ctx)
	})
}

// ErrNotBulk says that items have to be stored one by one.
var ErrNotBulk = errors.New("not a bulk load")
