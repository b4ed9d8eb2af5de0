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

// CreateCollection creates a collection, durably. A name that is in use gives
// ErrExists, a schema that cannot be ErrInvalid.
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

// EnsureCollection returns the collection of that name, and creates it where there is none,
// as CreateCollection does; with others that call it at the same time, one creates it. A
// collection that is there has to have what the schema names, by the same metrics and with the
// same of its modalities in one space, and may have more modalities and fields, as Alter adds
// them; else the error is ErrExists and says what differs. It costs nothing where the collection
// is there.
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

// An Alteration says what the items of a collection may hold from now on, besides what
// they may hold already, and how their vectors are compared.
type Alteration struct {
	AddModalities []Modality // not in a codes-only collection
	AddFields     []Field

	// IndexFields are names of fields of the collection that are indexed from now on, so that filters
	// by them are fast. Those that are stay so.
	IndexFields []string

	// SpaceOf has modalities, by name, join the space of another: with all that share theirs, so
	// that all of both share one. "" takes a modality out of its space, before any joins another.
	SpaceOf map[string]string

	// Metrics are the metrics of modalities from now on, by name, and of all that share their space
	// then.
	Metrics map[string]Metric
}

// Alter adds modalities and fields to the collection, indexes fields, and changes metrics and spaces of
// modalities, durably and in one commit: all of it or nothing. Items that are there lack what
// is added until they are written again, or merged with what they are to get; indexed fields
// can be filtered by at once. All handles of the collection see the new schema from then on;
// snapshots, and reads that have begun, go on with the one before. Nothing is taken away, and
// dimensions and types do not change.
//
// IndexFields takes some microseconds an item, while searches and writes go on: filters read the items
// until all fields are indexed, and then the rest of the alteration comes with that in one commit. A
// string of more than MaxIndexedBytes refuses it, with the key of its item, an *ItemError. If it fails,
// its context ends or the process does, no field is indexed, and it can be begun again. Only one
// alteration of a collection makes indexes at a time; others give ErrBusy.
//
// Metrics and spaces count for answers by vectors, see Query, and nothing else: not for codes.
// Cursors of answers that they change are refused.
//
// Code spaces go on as they are, with the modalities that their models know. A new
// modality is therefore of no account for codes, and queries of it give ErrNoModel, until
// a training has seen labelled items that have it. Where codes are shared, items that have
// it can be searched for (Query.To), by the codes that they have otherwise.
//
// A name that is in use gives ErrExists, what is not possible ErrInvalid, and a
// collection that is index-only ErrReadOnly. The time is that of one commit, whatever the
// size, but for IndexFields.
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
