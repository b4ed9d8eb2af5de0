package db

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/bulk"
	"github.com/fddhdb/fddhdb/db/internal/bulk/spool"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// bulkItems is the number of items from which on a batch that only puts new items
// into one collection is stored as sorted tables, which the store takes over, instead
// of through its log and memory. With so many both take about as long: a dozen files
// have to be made durable, one for each kind of key, which costs as much as some
// thousand items cost the ordinary way. (Tests have less.)
var bulkItems = 8192

// A Batch collects changes, to any collections of one database, that are
// committed together: all of them become visible and durable, or none. The items
// are checked and copied when they are added. Not safe for concurrent use.
type Batch struct {
	db      *DB
	changes []*state.Change // in the order in which they were added; the batch owns their items
	columns *bulk.Items     // items to put, which come after changes; nil: there are only changes
	single  bool            // there are only changes, and will be
	bytes   int             // see Bytes
	staged  *spool.Spool    // of the import that this batch completes: its commit is promised; nil: none
	err     error           // the first one of add; Commit returns it
	done    bool            // Commit has been called
	stored  bool            // and has returned nil
}

// NewBatch returns an empty batch.
func (d *DB) NewBatch() *Batch { return &Batch{db: d.orNone()} }

// Len returns the number of changes in the batch.
func (b *Batch) Len() int {
	b = b.orNone()
	n := len(b.changes)
	if b.columns != nil {
		n += b.columns.Len()
	}
	return n
}

// Bytes estimates what the items of the batch take, in bytes; Commit refuses more
// than MaxBatchBytes, or MaxBulkBytes where all are new items of one collection.
func (b *Batch) Bytes() int { return b.orNone().bytes }

// Put adds an item to store; see Collection.Put, and Keys for the key of an item without
// one. The first item that cannot be stored makes this and every later call, and Commit, return its error.
func (b *Batch) Put(c *Collection, item *Item) error { return b.add(c, state.PutItem, item) }

// Merge adds an item to merge; see Collection.Merge.
func (b *Batch) Merge(c *Collection, item *Item) error { return b.add(c, state.MergeItem, item) }

// Delete adds an item to delete, if there is one with this key.
func (b *Batch) Delete(c *Collection, key string) error {
	return b.add(c, state.DeleteItem, &Item{Key: key})
}

// RegisterLabels gives ids to labels in this order, where they have none yet,
// whether or not an item ever carries them. Labels are else numbered as they
// first appear.
func (b *Batch) RegisterLabels(c *Collection, labels []string) error {
	return b.add(c, state.AddLabels, &Item{Labels: labels})
}

// add checks and copies an item, and adds the change. The first error stays: every later call
// returns it, and Commit.
func (b *Batch) add(c *Collection, kind state.ChangeKind, item *Item) error {
	b = b.orNone()
	if b.err != nil {
		return b.err
	}
	if b.err = b.check(c, kind, item); b.err == nil && b.bytes > record.MaxBulkBytes {
		b.err = fault.Invalid("a batch of more than %d bytes: split it", record.MaxBulkBytes)
		b.changes, b.columns = nil, nil
	}
	return b.err
}

// usable refuses a batch that cannot take more, and a collection it cannot write to.
func (b *Batch) usable(c *Collection) error {
	switch {
	case c == nil:
		return fault.Invalid("no collection")
	case b.done:
		return fault.Invalid("the batch has been committed")
	case c.db != b.db:
		return fault.Invalid("the collection %q is of another database", c.name)
	}
	return c.writable()
}

// check adds a change, or a row to the columns, if the item may be stored.
func (b *Batch) check(c *Collection, kind state.ChangeKind, item *Item) error {
	if err := b.usable(c); err != nil {
		return err
	}
	if item == nil {
		return fault.Invalid("no item")
	}
	if kind == state.DeleteItem {
		if err := record.CheckWholeKey(item.Key); err != nil {
			return err
		}
	}
	columns := b.columnsFor(c, kind)
	return c.read(func(_ *state.View, cv *state.CollectionView) error {
		if err := cv.Changeable(); err != nil {
			return err
		}
		if columns != nil && isPlain(cv.Descriptor, item) {
			columns.AddPlain(item.Key, item.Code)
			b.bytes += record.ItemBytes + len(item.Key) + 8*codec.Words(cv.Bits)
			return nil
		}
		it, err := checkChange(cv.Descriptor, kind, item)
		if err != nil {
			return err
		}
		if columns != nil {
			columns.Add(it)
		} else {
			b.changes = append(b.changes, &state.Change{Collection: c.id, Kind: kind, Item: it})
		}
		b.bytes += it.Bytes()
		return nil
	})
}

// checkChange checks what a change has, and copies it.
func checkChange(d *record.Descriptor, kind state.ChangeKind, item *Item) (*record.Item, error) {
	switch kind {
	case state.DeleteItem:
		return &record.Item{Key: item.Key}, nil
	case state.AddLabels:
		for _, l := range item.Labels {
			if err := record.CheckLabel(l); err != nil {
				return nil, err
			}
		}
		return &record.Item{Labels: slices.Clone(item.Labels)}, nil
	}
	return checkItem(d, item, kind == state.MergeItem)
}

// columnsFor returns the columns for an item that is put as long as the batch does nothing
// else, but for labels that it has registered before, with one collection. Else it returns
// nil, and the batch has changes one by one from then on.
func (b *Batch) columnsFor(c *Collection, kind state.ChangeKind) *bulk.Items {
	switch {
	case b.single || b.columns == nil && kind == state.AddLabels:
		return nil
	case kind != state.PutItem || b.columns != nil && b.columns.Collection.ID != c.id:
		b.spill()
		return nil
	case b.columns != nil:
		return b.columns
	}
	columns := bulk.New(c.inside())
	for _, ch := range b.changes {
		if ch.Collection != c.id {
			b.spill()
			return nil
		}
		columns.Register(ch.Item.Labels)
	}
	b.columns = columns
	return columns
}

// spill makes changes of the columns.
func (b *Batch) spill() {
	k := b.columns
	b.columns, b.single = nil, true
	if k == nil {
		return
	}
	b.changes = slices.Grow(b.changes, k.Len())
	for i := range k.Len() {
		b.changes = append(b.changes, &state.Change{Collection: k.Collection.ID, Kind: state.PutItem, Item: k.Item(i)})
	}
}

// isBulk reports whether the batch is to be stored as sorted tables.
func (b *Batch) isBulk() bool { return b.columns != nil && b.columns.Len() >= bulkItems }

// Commit encodes the items, on all cores where there are many, and stores them.
// Thousands of new items of one collection, and nothing else but labels
// registered before them, are stored several times faster than the same number of
// other changes. When it returns nil, everything is durable (see Options.NoSync) and visible;
// with an error other than ErrFailed, nothing is. The batch cannot be used
// again.
func (b *Batch) Commit(ctx context.Context) error {
	b = b.orNone()
	if b.err != nil {
		return b.err
	}
	if b.done {
		return fault.Invalid("the batch has been committed")
	}
	limit := record.MaxBatchBytes
	if b.isBulk() {
		limit = record.MaxBulkBytes
	}
	if b.bytes > limit {
		return fault.Invalid("a batch of %d bytes, at most %d are possible: split it", b.bytes, limit)
	}
	if err := b.db.state.Guard.Enter(); err != nil {
		return err
	}
	defer b.db.state.Guard.Leave()
	b.done = true
	ctx, call := b.db.state.Signals.Call(ctx, event.OpWrite, "")
	n := b.Len()
	err := b.commit(ctx)
	b.stored = err == nil
	b.db.counters.wrote(&call, n, err)
	return err
}

// Keys returns the keys of the items that the batch has put and merged, in the order in
// which they were added: the given ones, and those that were made for items without key. It
// returns nil before Commit has returned nil. The slice is the caller's; it costs a string
// for each item.
func (b *Batch) Keys() []string {
	b = b.orNone()
	if !b.stored {
		return nil
	}
	if b.columns != nil {
		return b.columns.Keys()
	}
	var keys []string
	for _, ch := range b.changes {
		if ch.Kind == state.PutItem || ch.Kind == state.MergeItem {
			keys = append(keys, ch.Item.Key)
		}
	}
	return keys
}

// commit decides how the batch is stored: as sorted tables, if it has nothing but many new
// items of one collection, or through the committer.
func (b *Batch) commit(ctx context.Context) error {
	if b.isBulk() {
		if err := b.columns.Commit(ctx, bulk.Options{Bytes: int64(b.bytes)}); !errors.Is(err, bulk.ErrNotBulk) {
			return err
		}
		if b.bytes > record.MaxBatchBytes {
			return fault.Invalid("a batch of %d bytes that does not only put new items into one collection, at most %d are possible: split it",
				b.bytes, record.MaxBatchBytes)
		}
	}
	b.spill()
	if len(b.changes) == 0 {
		return ctx.Err()
	}
	if err := b.waitForCodes(ctx); err != nil {
		return err
	}
	if err := b.encode(ctx); err != nil {
		return err
	}
	if b.staged != nil {
		return b.db.state.Committer.WriteAlone(ctx, b.changes, b.staged.Promise)
	}
	return b.db.state.Committer.Submit(ctx, &state.Request{Changes: b.changes})
}

// waitForCodes waits until the codes of all collections of the batch are loaded.
func (b *Batch) waitForCodes(ctx context.Context) error {
	var waits []*state.Loading
	err := b.db.state.Read(func(v *state.View) error {
		last := uint32(0)
		for _, ch := range b.changes {
			if cv, ok := v.Collections.Get(ch.Collection); ok && ch.Collection != last {
				last = ch.Collection
				waits = cv.AppendLoading(waits)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return state.WaitForAll(ctx, waits)
}

// encode makes the codes of the items to put, under the models that are current
// now. The committer makes them again where that has changed by then.
func (b *Batch) encode(ctx context.Context) error {
	return b.db.state.Read(func(v *state.View) error {
		return work.Parallel(ctx, len(b.changes), func(i int) error {
			ch := b.changes[i]
			cv, ok := v.Collections.Get(ch.Collection)
			if ch.Kind != state.PutItem || !ok {
				return nil
			}
			ids := cv.Labels.Lookup(ch.Item.Labels)
			ch.Encs = make(spaces.Encodings, len(cv.Spaces))
			for j, sp := range cv.Spaces {
				var err error
				if ch.Encs[j], err = sp.Space.Encode(ch.Item.Vectors, ids, ch.Item.Code); err != nil {
					return fault.OfItem(ch.Item.Key, fmt.Errorf("fddhdb: encode: %w", err))
				}
			}
			return nil
		})
	})
}
