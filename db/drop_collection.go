package db

import (
	"context"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
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
	if err := d.state.Guard.Enter(); err != nil {
		return err
	}
	defer d.state.Guard.Leave()
	var dropped *state.CollectionState
	err := d.state.Committer.Free(ctx, func(tx *state.Tx) error {
		if dropped = tx.Committer.Named(name); dropped == nil {
			return fault.NotFound("collection %q", record.Shortened(name))
		}
		return tx.DropCollection(dropped)
	})
	if err != nil {
		return err
	}
	close(dropped.Gone)
	for _, sp := range dropped.Spaces {
		d.learning.Dropped(dropped.ID, sp.ID)
	}
	d.imports.changed.Add(1)
	d.changed(ctx, event.CollectionDropped, event.Event{Collection: name})
	d.search.Keys.Clear() // of all collections: what is searched for comes back soon
	return nil
}
