package bulk

import (
	"context"
	"errors"
	"log/slog"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// LoadItems is the number of items from which on a batch that only puts new items into one
// collection is stored as sorted tables, which the store takes over, instead of through its log
// and memory. With so many both take about as long: a dozen files have to be made durable, one
// for each kind of key, which costs as much as some thousand items cost the ordinary way.
// (Tests have less.)
var LoadItems = 8192

// loadBytes is the size from which on such a batch is stored as tables, however few its items
// are: the log and memory would write it twice.
const loadBytes = 16 << 20

// A Batch is changes to commit together, all or none, with marks.
type Batch struct {
	Changes []*state.Change // in the order in which they were added
	Marks   []record.Mark   // of several under one name the last counts
	Bytes   int             // estimate of what the items take

	// FirstKey is set by Commit. An item to put that still has no key after it has the number
	// FirstKey + i as its key, where i is its position among the items to put.
	FirstKey uint64
}

// puts returns the changes that put items, if the batch can be a load: it puts items into one
// collection, of which many or large ones, and before that does nothing but register labels there.
func (b *Batch) puts() []*state.Change {
	first := 0
	for first < len(b.Changes) && b.Changes[first].Kind == state.AddLabels {
		first++
	}
	puts := b.Changes[first:]
	if len(puts) == 0 || len(puts) < LoadItems && b.Bytes < loadBytes {
		return nil
	}
	for i, ch := range b.Changes {
		if ch.Collection != puts[0].Collection || i >= first && ch.Kind != state.PutItem {
			return nil
		}
	}
	return puts
}

// Commit stores a batch: as sorted tables where it has nothing but many new items of one
// collection, else through the committer. When it returns nil the batch is durable and visible;
// with another error than fault.ErrFailed nothing of it is. The caller has entered the Guard.
func (b *Batch) Commit(ctx context.Context, d *state.Database) error {
	puts, most := b.puts(), record.MaxBulkBytes
	if puts == nil {
		most = record.MaxBatchBytes
	}
	if b.Bytes > most {
		return fault.Invalid("a batch of %d bytes, at most %d are possible: split it", b.Bytes, most)
	}
	if puts == nil {
		if len(b.Changes) == 0 && len(b.Marks) == 0 {
			return ctx.Err()
		}
		return d.Write(ctx, b.Changes, b.Marks)
	}
	ctx, call := d.Signals.Call(ctx, event.OpWrite, "")
	err := b.load(ctx, d, puts)
	if errors.Is(err, errNotBulk) {
		if err = nil; b.Bytes > record.MaxBatchBytes {
			err = fault.Invalid("a batch of %d bytes that does not only put new items into one collection, at most %d are possible: split it",
				b.Bytes, record.MaxBatchBytes)
		} else {
			err = d.Committer.Submit(ctx, &state.Request{Changes: b.Changes, Marks: b.Marks})
		}
	}
	d.Wrote(&call, len(b.Changes), err)
	return err
}

// load stores the batch as tables, and encodes the items before that. It returns errNotBulk if
// they have to be stored one by one, for example because some of them are there already; then
// nothing has happened, and the items are encoded. With another error the database is as it
// was, or has failed (fault.ErrFailed).
//
// The committer is busy, and other writers wait, while the tables are made.
func (b *Batch) load(ctx context.Context, d *state.Database, puts []*state.Change) error {
	// CommitTables asks again, but encoding takes long.
	if err := d.Engine.Admit(int64(b.Bytes), false); err != nil {
		return err
	}
	if err := d.Prepare(ctx, b.Changes); err != nil {
		return err
	}
	name := ""
	if cv, ok := d.Current.Load().Collections.Get(puts[0].Collection); ok {
		name = cv.Name
	}
	ctx, op := d.Signals.Begin(ctx, event.OpBulkLoad, name)
	defer op.Abandon()
	err := d.Committer.Load(ctx, func(tx *state.Tx) error {
		// From here on this is the committer's goroutine, and no other request runs.
		l := newLoad(tx.Committer, b, puts)
		if l == nil {
			return errNotBulk
		}
		return l.run(ctx)
	})
	if errors.Is(err, errNotBulk) {
		op.End(nil, event.Event{Level: slog.LevelDebug, Attrs: []slog.Attr{slog.String("outcome", "one by one")}})
		return err
	}
	op.End(err, event.Event{Items: int64(len(puts)), Bytes: int64(b.Bytes)})
	if err == nil {
		d.Committer.Figures.Put.Add(uint64(len(puts)))
	}
	return err
}

// errNotBulk says that a batch cannot be stored as a load, and its items have to be stored one
// by one.
var errNotBulk = errors.New("not a bulk load")
