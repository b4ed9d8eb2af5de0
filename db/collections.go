package db

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// CreateCollection creates a collection, durably. A name in use gives ErrExists, an
// impossible schema ErrInvalid.
func (d *DB) CreateCollection(ctx context.Context, name string, schema Schema) (*Collection, error) {
	if err := record.CheckName("collection", name); err != nil {
		return nil, err
	}
	if err := schema.checkMade(); err != nil {
		return nil, err
	}
	desc := schema.descriptor(name)
	if err := desc.Check(); err != nil {
		return nil, err
	}
	if err := desc.Settle(); err != nil {
		return nil, err
	}
	if err := d.writable(); err != nil {
		return nil, err
	}
	if err := d.state.Guard.Enter(); err != nil {
		return nil, err
	}
	defer d.state.Guard.Leave()
	err := d.state.Committer.Do(ctx, 0, func(tx *state.Tx) error { return tx.CreateCollection(desc) })
	if err != nil {
		return nil, err
	}
	d.changed(ctx, event.CollectionCreated, event.Event{Collection: name})
	return &Collection{db: d, id: desc.ID, name: name}, nil
}

// Collection returns the collection of that name, or ErrNotFound.
func (d *DB) Collection(name string) (*Collection, error) {
	v, done, err := d.state.Acquire()
	if err != nil {
		return nil, err
	}
	defer done()
	id, ok := v.IDs.Get(name)
	if !ok {
		return nil, fault.NotFound("collection %q", record.Shortened(name))
	}
	return &Collection{db: d, id: id, name: name}, nil
}

// Collections returns the names of the collections, sorted.
func (d *DB) Collections() ([]string, error) {
	v, done, err := d.state.Acquire()
	if err != nil {
		return nil, err
	}
	defer done()
	names := make([]string, 0, v.Collections.Len())
	for cv := range v.Collections.Values() {
		names = append(names, cv.Name)
	}
	slices.Sort(names)
	return names, nil
}

// EnsureCollection returns the collection of that name, and creates it if there is none; of several
// concurrent calls one creates it. An existing collection must have the modalities and fields of
// the schema, with the same metrics and shared spaces, and may have more; otherwise the error is
// ErrExists and names the difference. For an existing collection the call costs nothing.
func (d *DB) EnsureCollection(ctx context.Context, name string, schema Schema) (*Collection, error) {
	if err := schema.checkMade(); err != nil {
		return nil, err
	}
	c, err := d.Collection(name)
	if errors.Is(err, fault.ErrNotFound) {
		if c, err = d.CreateCollection(ctx, name, schema); errors.Is(err, fault.ErrExists) {
			c, err = d.Collection(name) // somebody was faster
		} else {
			return c, err
		}
	}
	if err != nil {
		return nil, err
	}
	wanted := schema.descriptor(name)
	if err := wanted.Settle(); err != nil {
		return nil, err
	}
	return look(c, func(_ *state.View, cv *state.CollectionView) (*Collection, error) {
		return c, cv.Lacks(wanted)
	})
}

// DropCollection deletes a collection with its items, spaces and models, durably and in one
// commit, whose time does not depend on the size. The name is free at once; a new collection
// under it has another number. Handles on the dropped collection give ErrNotFound from then
// on, and so does a training or reindexing of it. Without a collection of that name the error
// is ErrNotFound. Snapshots, and reads that have begun, still see the collection. Its disk space
// comes back with compactions (Compact does it at once), its memory when the last reader is
// done.
func (d *DB) DropCollection(ctx context.Context, name string) error {
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
	d.changed(ctx, event.CollectionDropped, event.Event{Collection: name})
	d.search.Keys.Clear() // of all collections: what is searched for comes back soon
	return nil
}

// An Alteration adds modalities and fields to a collection, indexes fields, and changes how vectors
// are compared.
type Alteration struct {
	AddModalities []Modality // not in a codes-only collection
	AddFields     []Field

	// IndexFields are names of fields to index, so that filters by them are fast. Indexed fields stay
	// indexed.
	IndexFields []string

	// SpaceOf makes modalities, by name, share a space with another modality; all modalities of both
	// spaces then share one. "" takes a modality out of its space, before any other change.
	SpaceOf map[string]string

	// Metrics are new metrics of modalities, by name. They hold for all modalities that share the space.
	Metrics map[string]Metric
}

// Alter adds modalities and fields to the collection, indexes fields, and changes metrics and spaces of
// modalities, durably and in one commit: all of it or nothing. Items that are there lack what
// is added until they are written again, or merged with what they are to get; indexed fields
// can be filtered by at once. All handles of the collection see the new schema from then on;
// snapshots, and reads that have begun, go on with the one before. Nothing is taken away, and
// dimensions and types do not change.
//
// IndexFields takes some microseconds an item, while searches and writes go on. Filters read the items
// until all fields are indexed; that commit has the rest of the alteration, too. A string of more than
// MaxIndexedBytes is an *ItemError, which names the item. After an error, or the end of the context or
// of the process, no field is indexed, and you can begin again. One alteration of a collection makes
// indexes at a time; another one gives ErrBusy.
//
// Metrics and shared spaces change answers by vectors (see Query), whose cursors are then refused. They do
// not change codes.
//
// Spaces of codes keep the modalities that their models know. Codes ignore a new modality, and queries
// of it give ErrNoModel, until a training has seen labelled items that have it. Query.To can name it at
// once.
//
// A name in use gives ErrExists, an impossible change ErrInvalid, and an index-only collection
// ErrReadOnly. Without IndexFields an alteration takes the time of one commit, whatever the size.
func (c *Collection) Alter(ctx context.Context, a Alteration) error {
	if err := c.writable(); err != nil {
		return err
	}
	if err := c.db.state.Guard.Enter(); err != nil {
		return err
	}
	defer c.db.state.Guard.Leave()
	metrics := map[string]record.Metric{}
	for name, m := range a.Metrics {
		metrics[name] = record.Metric(m)
	}
	modalities, fields := storedModalities(a.AddModalities), storedFields(a.AddFields)
	with := func(d *record.Descriptor) (*record.Descriptor, error) {
		if len(a.IndexFields) > 0 && len(modalities)+len(fields)+len(a.SpaceOf)+len(metrics) == 0 {
			return d, nil
		}
		return d.With(modalities, fields, record.Respacing{SpaceOf: a.SpaceOf, Metrics: metrics})
	}
	var err error
	if len(a.IndexFields) > 0 {
		err = c.inside().IndexFields(ctx, slices.Clone(a.IndexFields), with)
	} else {
		err = c.inside().Do(ctx, 0, func(tx *state.Tx, s *state.CollectionState) error {
			d, err := with(s.Descriptor)
			if err != nil {
				return err
			}
			return tx.AlterCollection(s, d)
		})
	}
	if err == nil {
		c.db.changed(ctx, event.CollectionAltered, event.Event{Collection: c.name, Attrs: []slog.Attr{
			slog.Int("modalities", len(a.AddModalities)), slog.Int("fields", len(a.AddFields)),
			slog.Int("spaces", len(a.SpaceOf)), slog.Int("metrics", len(a.Metrics)), slog.Int("indexed", len(a.IndexFields)),
		}})
	}
	return err
}
