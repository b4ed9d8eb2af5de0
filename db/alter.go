package db

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// An Alteration says what the items of a collection may hold from now on, besides what
// they may hold already.
type Alteration struct {
	AddModalities []Modality // not in a codes-only collection
	AddFields     []Field
}

// Alter adds modalities and fields to the collection, durably and in one commit: all of
// them or none. Items that are there lack them until they are written again, or merged
// with what they are to get; indexed fields can be filtered by at once. All handles of the
// collection see the new schema from then on; snapshots, and reads that have begun, go on
// with the one before. What is there stays what it is: nothing is taken away, and
// dimensions and types do not change.
//
// Code spaces go on as they are, with the modalities that their models know. A new
// modality is therefore of no account for codes, and queries of it give ErrNoModel, until
// a training has seen labelled items that have it. Where codes are shared, items that have
// it can be searched for (Query.To), by the codes that they have otherwise.
//
// A name that is in use gives ErrExists, what is not possible ErrInvalid, and a
// collection that is index-only ErrReadOnly. The time is that of one commit, whatever the
// size.
func (c *Collection) Alter(ctx context.Context, a Alteration) error {
	c = c.orNone()
	if err := c.writable(); err != nil {
		return err
	}
	if err := c.db.state.Guard.Enter(); err != nil {
		return err
	}
	defer c.db.state.Guard.Leave()
	err := c.inside().Do(ctx, 0, func(tx *state.Tx, s *state.CollectionState) error {
		d, err := a.of(s.Descriptor)
		if err != nil {
			return err
		}
		return tx.AlterCollection(s, d)
	})
	if err == nil {
		c.db.changed(ctx, event.CollectionAltered, event.Event{Collection: c.name, Attrs: []slog.Attr{
			slog.Int("modalities", len(a.AddModalities)), slog.Int("fields", len(a.AddFields)),
		}})
	}
	return err
}

// of returns the descriptor of the collection when it has been altered. What is new
// comes last, as positions never change.
func (a Alteration) of(d *record.Descriptor) (*record.Descriptor, error) {
	switch {
	case d.IndexOnly:
		return nil, fmt.Errorf("%w: collection %q is index-only, a copy that stays as it is: alter the database that it is a copy of",
			fault.ErrReadOnly, d.Name)
	case len(a.AddModalities)+len(a.AddFields) == 0:
		return nil, fault.Invalid("alter collection %q: neither modalities nor fields are given to add", d.Name)
	case d.CodesOnly() && len(a.AddModalities) > 0:
		return nil, fault.Invalid("modality %q: the items of collection %q bring codes: fields can be added, modalities cannot",
			record.Shortened(a.AddModalities[0].Name), d.Name)
	}
	for _, m := range a.AddModalities {
		if err := unused(d, "modality", m.Name); err != nil {
			return nil, err
		}
	}
	for _, f := range a.AddFields {
		if err := unused(d, "field", f.Name); err != nil {
			return nil, err
		}
	}
	out := *d
	out.Modalities = slices.Concat(d.Modalities, storedModalities(a.AddModalities))
	out.Fields = slices.Concat(d.Fields, storedFields(a.AddFields))
	if err := out.Check(); err != nil {
		return nil, err
	}
	return &out, nil
}

// unused refuses a name that a modality or a field of the collection has.
func unused(d *record.Descriptor, what, name string) error {
	for _, m := range d.Modalities {
		if m.Name == name {
			return fmt.Errorf("%w: %s %q: collection %q has a modality of that name, of dimension %d, which stays as it is",
				fault.ErrExists, what, name, d.Name, m.Dim)
		}
	}
	for _, f := range d.Fields {
		if f.Name == name {
			return fmt.Errorf("%w: %s %q: collection %q has a field of that name, of type %s, which stays as it is",
				fault.ErrExists, what, name, d.Name, f.Type)
		}
	}
	return nil
}
