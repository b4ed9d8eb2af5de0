package bulk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// LoadItems is the number of items from which on a batch that only puts new items
// into one collection is stored as sorted tables, which the store takes over, instead
// of through its log and memory. With so many both take about as long: a dozen files
// have to be made durable, one for each kind of key, which costs as much as some
// thousand items cost the ordinary way. (Tests have less.)
var LoadItems = 8192

// A Batch collects changes, to any collections of one database, that are committed together:
// all of them or none. It owns what is added. As long as it does nothing but put items into one
// collection, and registers labels before, it holds them as Items, and may commit them so. It
// is for one goroutine.
type Batch struct {
	DB      *state.Database
	Bytes   int                       // estimate of what the changes take; those who add to it look at limits
	Promise func(commit uint64) error // as Options.Promise, for a commit of changes; nil: it is like any other

	marks   []record.Mark   // the last one of a name counts
	marked  int             // bytes of marks
	changes []*state.Change // in the order in which they were added
	columns *Items          // items to put, which come after changes; nil: there are only changes
	single  bool            // there are only changes, and will be
}

// Singly makes the batch hold changes one by one. It comes before anything else.
func (b *Batch) Singly() { b.single = true }

// Len returns the number of changes.
func (b *Batch) Len() int {
	n := len(b.changes)
	if b.columns != nil {
		n += b.columns.Len()
	}
	return n
}

// InColumns reports whether the batch holds nothing but items to put into one collection.
func (b *Batch) InColumns() bool { return b.columns != nil }

// Take prepares the batch for a change of this kind to a collection, and reports whether it goes
// into columns. Where it cannot, nothing goes there from then on.
func (b *Batch) Take(c state.Collection, kind state.ChangeKind) (inColumns bool) {
	switch {
	case b.single || b.columns == nil && kind == state.AddLabels:
		return false
	case kind != state.PutItem || b.columns != nil && b.columns.Collection.ID != c.ID:
		b.spill()
		return false
	case b.columns != nil:
		return true
	}
	columns := New(c)
	for _, ch := range b.changes {
		if ch.Collection != c.ID {
			b.spill()
			return false
		}
		columns.Register(ch.Item.Labels)
	}
	b.columns = columns
	return true
}

// Add adds the change that Take has prepared for.
func (b *Batch) Add(collection uint32, kind state.ChangeKind, it *record.Item) {
	if b.columns != nil {
		b.columns.Add(it)
	} else {
		b.changes = append(b.changes, &state.Change{Collection: collection, Kind: kind, Item: it})
	}
	b.Bytes += it.Bytes()
}

// AddPlain adds an item that has nothing but a key and a code, when Take has said that it goes
// into columns. It copies the code.
func (b *Batch) AddPlain(key string, code []byte) {
	b.columns.AddPlain(key, code)
	b.Bytes += record.ItemBytes + len(key) + 8*codec.Words(8*len(code))
}

// Expect adds the condition that old is stored under a key, or nothing if old is nil.
func (b *Batch) Expect(collection uint32, key string, old *record.Item) {
	b.spill() // a bulk load reads nothing that it does not replace
	b.changes = append(b.changes, &state.Change{Collection: collection, Kind: state.ExpectItem, Item: &record.Item{Key: key}, Old: old})
	if old != nil {
		b.Bytes += old.Bytes()
	}
}

// Mark adds a mark, which has been checked.
func (b *Batch) Mark(m record.Mark) error {
	if b.marked += m.Bytes(); b.marked > record.MaxMarksBytes {
		return fault.Invalid("marks of %d bytes in one batch, at most %d are possible", b.marked, record.MaxMarksBytes)
	}
	b.marks = append(b.marks, m)
	return nil
}

// Forget drops all changes, of a batch that will not be committed.
func (b *Batch) Forget() { b.marks, b.changes, b.columns = nil, nil, nil }

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

// isLoad reports whether the batch is to be stored as sorted tables.
func (b *Batch) isLoad() bool { return b.columns != nil && b.columns.Len() >= LoadItems }

// CheckSize refuses a batch that takes more than one commit can hold.
func (b *Batch) CheckSize() error {
	limit := record.MaxBatchBytes
	if b.isLoad() {
		limit = record.MaxBulkBytes
	}
	if b.Bytes > limit {
		return fault.Invalid("a batch of %d bytes, at most %d are possible: split it", b.Bytes, limit)
	}
	return nil
}

// Keys returns the keys of the items that were put and merged, in the order in which they were
// added, once they are committed. The slice is the caller's.
func (b *Batch) Keys() []string {
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

// OnlyKey returns the key of the item of the first change, once it is committed.
func (b *Batch) OnlyKey() string { return b.changes[0].Item.Key }

// Found returns how many of the items that changes are about were there, once they are
// committed.
func (b *Batch) Found() (n int) {
	for _, ch := range b.changes {
		if ch.Found {
			n++
		}
	}
	return n
}

// Commit stores the batch: as sorted tables, if it has nothing but many new items of one
// collection, or through the committer. The caller has entered the Guard. The batch is not used
// again, but for Keys, OnlyKey and Found.
func (b *Batch) Commit(ctx context.Context) error {
	ctx, call := b.DB.Signals.Call(ctx, event.OpWrite, "")
	n := b.Len()
	err := b.commit(ctx)
	b.DB.Wrote(&call, n, err)
	return err
}

// commit is Commit without its span.
func (b *Batch) commit(ctx context.Context) error {
	if b.isLoad() {
		if err := b.columns.Commit(ctx, Options{Bytes: int64(b.Bytes), Marks: b.marks}); !errors.Is(err, ErrNotBulk) {
			return err
		}
		if b.Bytes > record.MaxBatchBytes {
			return fault.Invalid("a batch of %d bytes that does not only put new items into one collection, at most %d are possible: split it",
				b.Bytes, record.MaxBatchBytes)
		}
	}
	b.spill()
	if len(b.changes) == 0 && len(b.marks) == 0 {
		return ctx.Err()
	}
	if err := b.waitForCodes(ctx); err != nil {
		return err
	}
	if err := b.encode(ctx); err != nil {
		return err
	}
	r := &state.Request{Changes: b.changes, Marks: b.marks}
	if b.Promise != nil {
		return b.DB.Committer.WriteAlone(ctx, r, b.Promise)
	}
	return b.DB.Committer.Submit(ctx, r)
}

// waitForCodes waits until the codes of all collections of the batch are loaded.
func (b *Batch) waitForCodes(ctx context.Context) error {
	var waits []*state.Loading
	err := b.DB.Read(func(v *state.View) error {
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
	return b.DB.Read(func(v *state.View) error {
		return work.Parallel(ctx, len(b.changes), func(i int) error {
			ch := b.changes[i]
			cv, ok := v.Collections.Get(ch.Collection)
			if ch.Kind != state.PutItem || !ok {
				return nil
			}
			ids := cv.Labels.Lookup(ch.Item.Labels)
			ch.EncodedBy, ch.Encs = cv.Labels, make(spaces.Encodings, len(cv.Spaces))
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
