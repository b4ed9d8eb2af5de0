package db

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// A Collection is a handle on one collection of a database; it costs nothing to
// keep. All methods are safe for concurrent use.
type Collection struct {
	db    *DB
	id    uint32     // of the collection; never used again, also when it is dropped
	name  string     // for errors
	pin   *state.Pin // of a snapshot, which owns it; nil: the handle shows the present state
	space uint32     // that it is looked at in, see InSpace; 0: the active one
}

// Name returns the name of the collection.
func (c *Collection) Name() string { return c.name }

// ID returns the number of the collection. A collection that is created under the name of a dropped one
// has another number.
func (c *Collection) ID() uint32 { return c.id }

// inside returns the collection in the terms of package state.
func (c *Collection) inside() state.Collection {
	return state.Collection{DB: c.db.state, ID: c.id, Name: c.name}
}

// read gives f the state of the collection, as it is seen in the space of the handle.
func (c *Collection) read(f func(v *state.View, cv *state.CollectionView) error) error {
	inView := func(v *state.View) error {
		cv, err := v.Collection(c.id, c.name)
		if err == nil {
			cv, err = cv.InSpace(c.space)
		}
		if err != nil {
			return err
		}
		return f(v, cv)
	}
	if c.pin != nil {
		return c.pin.Read(inView)
	}
	return c.db.state.Read(inView)
}

// look returns what f finds in the state that the handle shows.
func look[T any](c *Collection, f func(v *state.View, cv *state.CollectionView) (T, error)) (T, error) {
	var found, none T
	err := c.read(func(v *state.View, cv *state.CollectionView) (err error) {
		found, err = f(v, cv)
		return err
	})
	if err != nil {
		return none, err
	}
	return found, nil
}

// each returns an iterator over the values that f yields from the state that the handle shows when
// the iteration starts. f returns an error of yield, which means that the caller has left the loop.
func each[T any](c *Collection, f func(v *state.View, cv *state.CollectionView, yield func(T) error) error) iter.Seq2[T, error] {
	return yielding(func(yield func(T) error) error {
		return c.read(func(v *state.View, cv *state.CollectionView) error { return f(v, cv, yield) })
	})
}

// yielding returns an iterator over the values that f yields; it ends with the error of f, if any. f
// returns an error of yield, which means that the caller has left the loop.
func yielding[T any](f func(yield func(T) error) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := f(func(x T) error {
			if !yield(x, nil) {
				return record.ErrStopped
			}
			return nil
		})
		if err = unlessStopped(err); err != nil {
			var none T
			yield(none, err)
		}
	}
}

// unlessStopped returns the error of an iteration, nil if the caller has left the loop early.
func unlessStopped(err error) error {
	if errors.Is(err, record.ErrStopped) {
		return nil
	}
	return err
}

// loaded waits until the codes that the handle shows are in memory. The codes of a snapshot get
// there even if its collection has been dropped.
func (c *Collection) loaded(ctx context.Context) error {
	all, err := look(c, func(_ *state.View, cv *state.CollectionView) ([]*state.Loading, error) {
		return cv.AppendLoading(nil), nil
	})
	if err != nil {
		return err
	}
	return state.WaitForAll(ctx, all)
}

// writable refuses the collections of snapshots.
func (c *Collection) writable() error {
	if c.pin != nil {
		return fmt.Errorf("%w: collection %q of a snapshot", fault.ErrReadOnly, c.name)
	}
	return c.db.writable()
}

// changeable refuses the collections of snapshots, and index-only copies: these lack the vectors that
// a change of an item, or a training, needs.
func (c *Collection) changeable() error {
	if err := c.writable(); err != nil {
		return err
	}
	return c.db.state.Read(func(v *state.View) error {
		cv, err := v.Collection(c.id, c.name)
		if err != nil {
			return err
		}
		return cv.Changeable()
	})
}

// Schema returns the schema of the collection.
func (c *Collection) Schema() (Schema, error) {
	return look(c, func(_ *state.View, cv *state.CollectionView) (Schema, error) { return schemaOf(cv.Descriptor), nil })
}

// Put stores an item and returns its key, which Put makes if the item has none (see Item.Key).
// An item with the same key is replaced whole. When Put returns, the item is durable (see
// Options.NoSync) and later searches find it. An item with neither a key nor contents is an
// ErrInvalid.
//
// Put costs the encoding of the vectors and one synced commit, which concurrent writers share. A
// new row copies the sets of rows that it joins, at worst a bit for each row of the
// collection. If the collection has labels or indexed fields, Put reads the item that it
// replaces.
func (c *Collection) Put(ctx context.Context, item *Item) (key string, err error) {
	return c.changeOne(ctx, state.PutItem, item)
}

// Merge changes the parts of a stored item that the given item sets, and keeps the others. It sets
// vectors by modality, all labels together, fields one by one, and the payload. nil sets nothing;
// labels or a payload that are empty but not nil are removed. Merge removes no field: Put the item
// for that. If no item has the key, Merge puts it. Merge returns the key, as Put does.
func (c *Collection) Merge(ctx context.Context, item *Item) (key string, err error) {
	return c.changeOne(ctx, state.MergeItem, item)
}

// changeOne commits one change and returns the key of its item.
func (c *Collection) changeOne(ctx context.Context, kind state.ChangeKind, item *Item) (key string, err error) {
	if err := c.writable(); err != nil {
		return "", err
	}
	ch := &change{}
	if err := c.check(ch, kind, item); err != nil {
		return "", err
	}
	d := c.db.state
	if err := d.Guard.Enter(); err != nil {
		return "", err
	}
	defer d.Guard.Leave()
	if err := d.Write(ctx, []*state.Change{&ch.Change}, nil); err != nil {
		return "", err
	}
	return ch.item.Key, nil
}

// Delete deletes the items with these keys in one commit, and returns how many of them there
// were.
func (c *Collection) Delete(ctx context.Context, keys ...string) (int, error) {
	b := c.db.NewBatch()
	for _, key := range keys {
		b.Delete(c, key)
	}
	if err := b.Commit(ctx); err != nil {
		return 0, err
	}
	return b.found(), nil
}

// Get returns the item with this key, or ErrNotFound.
func (c *Collection) Get(ctx context.Context, key string) (*Item, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return look(c, func(v *state.View, cv *state.CollectionView) (*Item, error) {
		row, err := cv.Row(v.Snap, key)
		if err != nil {
			return nil, err
		}
		it, err := search.ReadItem(cv, v.Snap, row, key)
		if err != nil {
			return nil, err
		}
		return itemOf(cv, it), nil
	})
}
