package db

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// DropCollection deletes a collection with its items, spaces and models, durably and in
// one commit. Its name is free again at once; what is created under it is another
// collection, as numbers of collections are never used again. Handles on the one that
// was dropped give ErrNotFound from then on, as does DropCollection where there is none
// of that name, and a training or reindexing of it ends with ErrNotFound. Snapshots, and
// reads that have begun, go on seeing it. The disk space comes back as the store is
// compacted (Compact does it at once), the memory when the last reader is done.
//
// The time is that of one commit, whatever the size.
func (d *DB) DropCollection(ctx context.Context, name string) error {
	d = d.orNone()
	if err := d.writable(); err != nil {
		return err
	}
	if err := d.guard.enter(); err != nil {
		return err
	}
	defer d.guard.leave()
	var dropped *collectionState
	err := d.committer.free(ctx, func(tx *tx) error {
		id, ok := tx.c.shown.ids.get(name)
		if !ok {
			return fault.NotFound("collection %q", record.Shortened(name))
		}
		dropped = tx.c.states[id]
		return tx.dropCollection(dropped)
	})
	if err != nil {
		return err
	}
	close(dropped.gone)
	for _, sp := range dropped.spaces {
		d.learners.remove(learnerKey{dropped.ID, sp.ID})
	}
	d.imports.changed.Add(1)
	d.changed(ctx, event.CollectionDropped, event.Event{Collection: name})
	d.keys.clear() // of all collections: what is searched for comes back soon
	return nil
}

// collectionKinds are the kinds of keys that a collection has besides those of its
// spaces.
var collectionKinds = []byte{
	codec.KindCollection, codec.KindLabel, codec.KindCounters,
	codec.KindKey, codec.KindItem, codec.KindFeatures, codec.KindRowKeys,
	codec.KindRows, codec.KindFieldRows,
}

func (tx *tx) dropCollection(s *collectionState) error {
	c := tx.c
	if err := tx.batch.Delete(codec.NameKey(s.Name), nil); err != nil {
		return err
	}
	for _, kinds := range [][]byte{collectionKinds, spaceKinds} {
		for _, kind := range kinds {
			prefix := codec.CollectionKey(kind, s.ID)
			if err := tx.batch.DeleteRange(prefix, codec.PrefixEnd(prefix), nil); err != nil {
				return err
			}
			maps.DeleteFunc(c.edits, func(key string, _ int) bool { return strings.HasPrefix(key, string(prefix)) })
		}
	}
	delete(c.states, s.ID)
	c.touch(s)
	return nil
}

// errDropped is why what works on a collection for long is told to end.
var errDropped = errors.New("collection dropped")

// untilDropped returns a context that also ends when the collection is dropped; stop
// frees what it takes.
func (c *Collection) untilDropped(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var gone <-chan struct{}
	err := c.read(func(_ *view, cv *collectionView) error {
		gone = cv.gone
		return nil
	})
	if err != nil {
		return ctx, func() { cancel(nil) } // what is done next finds out
	}
	go func() {
		select {
		case <-gone:
			cancel(errDropped)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// dropped words the error of what has ended because the collection was dropped.
func (c *Collection) dropped(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == errDropped {
		return fault.NotFound("collection %q: it has been dropped", c.name)
	}
	return err
}
