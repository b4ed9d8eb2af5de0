package db

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/bulk"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// A Batch collects changes to any collections of one database. Commit makes all of them
// visible and durable, or none. Put and Merge check and copy their item. A Batch is not safe
// for concurrent use.
type Batch struct {
	db     *DB
	in     bulk.Batch // the changes, which belong to the batch
	next   change     // memory for the next change
	marked int        // bytes of the marks
	err    error      // the first one of add; Commit returns it
	done   bool       // Commit has been called
	stored bool       // and has returned nil
}

var errCommitted = fault.Invalid("the batch has been committed")

// NewBatch returns an empty batch.
func (d *DB) NewBatch() *Batch { return &Batch{db: d} }

// Len returns the number of changes in the batch, without marks.
func (b *Batch) Len() int { return b.in.Len() }

// Bytes estimates the size of the items of the batch, in bytes. Commit refuses more
// than MaxBatchBytes, or MaxBulkBytes if all are new items of one collection.
func (b *Batch) Bytes() int { return b.in.Bytes }

// A batch is Full from these sizes on, in bytes of memory.
const (
	fullFirstBytes = 16 << 20 // if it has at least a quarter as many changes as the collection has items
	fullBytes      = 48 << 20
	fullSmallBytes = 64 << 20 // if its items take at most smallBytes each
	smallBytes     = 64
)

// Full reports whether the batch is large enough to commit as a part of a long import. A program that stores
// more items than fit into memory commits each full batch, with a Mark of its position, and begins the next
// batch; after an interruption it goes on at the mark. You may commit larger batches, too.
//
// A batch is full when it takes 16 MiB of memory and has a quarter as many changes as the collection has
// items; at 48 MiB at the latest, or 64 MiB if its items take at most 64 bytes each, as codes do. So a small
// import takes little memory, and a long one has few parts whose keys the store has to merge.
func (b *Batch) Full() bool {
	bytes := b.in.Memory()
	switch {
	case bytes < fullFirstBytes:
		return false
	case bytes <= smallBytes*b.Len():
		return bytes >= fullSmallBytes
	}
	return bytes >= fullBytes || 4*b.Len() >= b.in.Held(b.db.state)
}

// Put adds an item to store; see Collection.Put. Keys has the key of an item without one. After an item that
// cannot be stored, this and every later call, and Commit, return its error.
func (b *Batch) Put(c *Collection, item *Item) error { return b.add(c, state.PutItem, item) }

// Merge adds an item to merge; see Collection.Merge.
func (b *Batch) Merge(c *Collection, item *Item) error { return b.add(c, state.MergeItem, item) }

// Delete adds an item to delete, if there is one with this key.
func (b *Batch) Delete(c *Collection, key string) error {
	return b.add(c, state.DeleteItem, &Item{Key: key})
}

// RegisterLabels gives ids to new labels in this order, whether or not an item ever carries them. Without it
// labels get ids in the order in which items bring them.
func (b *Batch) RegisterLabels(c *Collection, labels []string) error {
	return b.add(c, state.AddLabels, &Item{Labels: labels})
}

// add checks and copies an item, and adds the change. Every later call, Commit included, returns the
// first error.
func (b *Batch) add(c *Collection, kind state.ChangeKind, item *Item) error {
	if b.err != nil {
		return b.err
	}
	if b.err = b.usable(c); b.err != nil {
		return b.err
	}
	b.next = change{}
	if b.err = c.check(&b.next, kind, item); b.err != nil {
		return b.err
	}
	if b.err = b.in.Add(&b.next.Change); b.err == nil && b.in.Bytes > record.MaxBulkBytes {
		b.err = fault.Invalid("a batch of more than %d bytes: split it", record.MaxBulkBytes)
		b.in = bulk.Batch{}
	}
	return b.err
}

// usable refuses a batch that is done, and a collection that cannot be written to.
func (b *Batch) usable(c *Collection) error {
	switch {
	case c == nil:
		return fault.Invalid("no collection")
	case b.done:
		return errCommitted
	case c.db != b.db:
		return fault.Invalid("the collection %q is of another database", c.name)
	}
	return c.writable()
}

// A change is a change and its item, in one piece of memory.
type change struct {
	state.Change
	item record.Item
}

// check makes ch a change with a copy of the item, if the item may be stored.
func (c *Collection) check(ch *change, kind state.ChangeKind, item *Item) error {
	if item == nil {
		return fault.Invalid("no item")
	}
	if kind == state.DeleteItem {
		if err := record.CheckWholeKey(item.Key); err != nil {
			return err
		}
	}
	ch.Collection, ch.Kind, ch.Item = c.id, kind, &ch.item
	return c.read(func(_ *state.View, cv *state.CollectionView) error {
		if err := cv.Changeable(); err != nil {
			return err
		}
		return checkChange(&ch.item, cv.Descriptor, kind, item)
	})
}

// checkChange checks the contents of a change, and copies them to c.
func checkChange(c *record.Item, d *record.Descriptor, kind state.ChangeKind, item *Item) error {
	switch kind {
	case state.DeleteItem:
		c.Key = item.Key
		return nil
	case state.AddLabels:
		for _, l := range item.Labels {
			if err := record.CheckLabel(l); err != nil {
				return err
			}
		}
		c.Labels = slices.Clone(item.Labels)
		return nil
	}
	return checkItem(c, d, item, kind == state.MergeItem)
}

// Commit encodes the items, on all cores if there are many, and stores them. When it returns nil, all changes
// are durable (see Options.NoSync) and visible; after an error other than ErrFailed none is. A batch that
// only puts thousands of new items into one collection, and registers labels, takes a fraction of the time of
// other changes. You cannot use a batch again.
func (b *Batch) Commit(ctx context.Context) error {
	if b.err != nil {
		return b.err
	}
	if b.done {
		return errCommitted
	}
	if err := b.db.state.Guard.Enter(); err != nil {
		return err
	}
	defer b.db.state.Guard.Leave()
	b.done = true
	err := b.in.Commit(ctx, b.db.state)
	b.stored = err == nil
	return err
}

// Keys returns the keys of the items that the batch has put and merged, in that order, with the keys that
// Commit has made. It returns nil until Commit has returned nil. The caller owns the slice, which takes a
// string for each item.
func (b *Batch) Keys() []string {
	if !b.stored {
		return nil
	}
	return b.in.Keys()
}

// found returns the number of changed items that existed before the commit.
func (b *Batch) found() int { return b.in.Found() }

// PutIf stores an item, as Put does, if the item stored under its key still equals old, and
// returns ErrConflict otherwise. old is the item as Get returned it, or nil if no item may have
// the key. PutIf compares contents (not codes that the database makes), so an item that was
// changed and changed back equals old.
func (c *Collection) PutIf(ctx context.Context, item, old *Item) error {
	b := c.db.NewBatch()
	b.PutIf(c, item, old)
	return b.Commit(ctx)
}

// PutIf adds an item to store, and the condition of Collection.PutIf, for the whole
// batch; see Expect.
func (b *Batch) PutIf(c *Collection, item, old *Item) error {
	if b.err == nil && item == nil {
		b.err = fault.Invalid("no item")
	}
	if b.err == nil {
		b.Expect(c, item.Key, old)
	}
	return b.Put(c, item)
}

// Expect adds a condition: Commit stores the batch only if, before it, the item under the key
// still equals old, as Get returned it; old is nil if no item may have the key. Otherwise it stores
// nothing and returns ErrConflict. So a program can read several items and change them depending on
// each other without a lock: after ErrConflict it reads them again. A condition costs a read of
// the item, in the committer.
func (b *Batch) Expect(c *Collection, key string, old *Item) error {
	if b.err == nil {
		b.err = b.expect(c, key, old)
	}
	return b.err
}

func (b *Batch) expect(c *Collection, key string, old *Item) error {
	if err := b.usable(c); err != nil {
		return err
	}
	if err := record.CheckWholeKey(key); err != nil {
		return err
	}
	var was *record.Item
	if old != nil {
		if old.Key != key {
			return fault.Invalid("the item that is expected under key %q has key %q", key, old.Key)
		}
		err := c.read(func(_ *state.View, cv *state.CollectionView) error {
			if err := cv.Changeable(); err != nil {
				return err
			}
			was = &record.Item{}
			return checkItem(was, cv.Descriptor, old, false)
		})
		if err != nil {
			return err
		}
	}
	ch := &state.Change{Collection: c.id, Kind: state.ExpectItem, Item: &record.Item{Key: key}, Old: was}
	return b.in.Add(ch)
}

// DeleteWhere deletes the items that match the expression (see Query.Where) in one synced commit, and returns
// their number. args are the values of the placeholders, see Query.Args.
//
// Matching and deleting are one step: DeleteWhere sees all writes that returned before the call, and no write
// comes between. Other writers wait meanwhile. If a field of the expression has no index, DeleteWhere reads
// the items beforehand, while others write. In the commit it then reads only the items that have come or
// changed since, or all of them if the collection was altered. A commit holds some millions of items, or a
// GiB of what they have taught; more is an ErrInvalid, so narrow the expression.
//
// An empty or blank expression is an ErrInvalid, because most likely the caller has lost it. To delete all
// items, drop the collection and create it again, or say
//
//	NOT label = ''
func (c *Collection) DeleteWhere(ctx context.Context, where string, args ...any) (int, error) {
	if err := c.db.state.Guard.Enter(); err != nil {
		return 0, err
	}
	defer c.db.state.Guard.Leave()
	if err := c.changeable(); err != nil {
		return 0, err
	}
	if strings.TrimSpace(where) == "" {
		return 0, &fault.WhereError{Column: 1,
			Reason: "an empty expression would delete all items: say NOT label = '' to delete them, or drop the collection"}
	}
	if err := c.inside().Loaded(ctx); err != nil {
		return 0, err
	}
	call := signal.NewCall()
	n, err := c.deleteWhere(ctx, where, args)
	c.db.state.Wrote(call, err)
	if err != nil {
		return 0, err
	}
	c.db.state.Committer.Figures.Deleted.Add(uint64(n))
	return n, nil
}

// deleteWhere is DeleteWhere of a collection whose codes are loaded.
func (c *Collection) deleteWhere(ctx context.Context, where string, args []any) (n int, err error) {
	in := c.inside()
	scans := false
	err = in.Read(func(_ *state.View, cv *state.CollectionView) (err error) {
		scans, err = search.Scans(cv, where, args)
		return err
	})
	if err != nil {
		return 0, err
	}
	if !scans {
		return deleteMatching(ctx, in, where, args, nil, nil)
	}
	err = in.Watching(ctx, func(changed *roaring.Bitmap) error {
		var known *search.Scanned
		err := in.Read(func(v *state.View, cv *state.CollectionView) (err error) {
			known, err = search.Scan(ctx, cv, v.Snap, where, args)
			return err
		})
		if err == nil {
			n, err = deleteMatching(ctx, in, where, args, known, changed)
		}
		return err
	})
	return n, err
}

// deleteMatching deletes the matching items. known, if not nil, has the matches of an earlier view, and
// changed the rows whose items have changed since.
func deleteMatching(ctx context.Context, in state.Collection, where string, args []any, known *search.Scanned,
	changed *roaring.Bitmap) (n int, err error) {
	err = in.Free(ctx, func(tx *state.Tx, s *state.CollectionState) error {
		v := in.DB.Current.Load() // of the present state
		cv, err := v.Collection(s.ID, s.Name)
		if err != nil {
			return err
		}
		rows, err := known.Matching(ctx, cv, v.Snap, where, args, changed)
		if err != nil {
			return err
		}
		n, err = tx.DeleteItems(ctx, s, int(rows.GetCardinality()),
			func(f func(row uint32, key string) error) error {
				return search.EachKeyOf(cv, v.Snap, rows, f)
			})
		tx.Empty = n == 0
		return err
	})
	return n, err
}

// Limits of marks.
const (
	// MaxMarkBytes is the length of the value of a mark at most.
	MaxMarkBytes = record.MaxMarkBytes

	// MaxMarksBytes is what names and values of the marks of one batch have together at most.
	MaxMarksBytes = record.MaxMarksBytes
)

// A Mark is bytes that a program keeps under a name, see Batch.Mark.
type Mark struct {
	Name  string
	Value []byte
}

// Mark stores bytes of your own under a name, in the commit of the batch: after a crash either both the mark
// and the changes are there, or neither. A program that applies a log or reads a queue keeps its position in
// a mark, and so applies each entry exactly once. Mark copies the value; an empty value deletes the mark. The
// last value of a name counts. A batch may have marks alone.
//
// A name is UTF-8 of 1 to 256 bytes; MaxMarkBytes and MaxMarksBytes bound the values. Checkpoints and backups
// have the marks of their state.
func (b *Batch) Mark(name string, value []byte) error {
	if b.err == nil {
		b.err = b.mark(name, value)
	}
	return b.err
}

func (b *Batch) mark(name string, value []byte) error {
	if b.done {
		return errCommitted
	}
	if err := b.db.writable(); err != nil {
		return err
	}
	m := record.Mark{Name: name, Value: bytes.Clone(value)}
	if err := m.Check(); err != nil {
		return err
	}
	if b.marked += m.Bytes(); b.marked > MaxMarksBytes {
		return fault.Invalid("marks of %d bytes in one batch, at most %d are possible", b.marked,
			MaxMarksBytes)
	}
	b.in.Marks = append(b.in.Marks, m)
	return nil
}

// Mark returns the bytes that the latest commit with a mark of that name has stored, or
// ErrNotFound. The slice is the caller's.
func (d *DB) Mark(name string) (value []byte, err error) {
	err = d.state.Read(func(v *state.View) error {
		value, err = markOf(v, name)
		return err
	})
	return value, err
}

// Mark is DB.Mark as of the snapshot.
func (s *Snapshot) Mark(name string) (value []byte, err error) {
	err = s.pin.Read(func(v *state.View) error {
		value, err = markOf(v, name)
		return err
	})
	return value, err
}

func markOf(v *state.View, name string) ([]byte, error) {
	if err := (record.Mark{Name: name}).Check(); err != nil {
		return nil, err
	}
	b, err := record.MarkOf(v.Snap, name)
	if err == nil && b == nil {
		err = fault.NotFound("mark %q", name)
	}
	return b, err
}

// Marks yields the marks whose names begin with prefix, in the order of the bytes of their names; the empty
// prefix means all. It shows the state at the start of the iteration. An error ends it.
func (d *DB) Marks(ctx context.Context, prefix string) iter.Seq2[Mark, error] {
	return yielding(func(yield func(Mark) error) error {
		return d.state.Read(func(v *state.View) error {
			return record.ForEachMark(v.Snap, prefix, func(m record.Mark) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				return yield(Mark(m))
			})
		})
	})
}
