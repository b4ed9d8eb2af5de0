package db

import (
	"context"

	"github.com/fddhdb/fddhdb/db/internal/bulk"
	"github.com/fddhdb/fddhdb/db/internal/copies"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// This is all that tests of package db_test use of what package db keeps to itself.

// State returns all that goes on in an open database.
func State(d *DB) *state.Database { return d.state }

// Learning returns how a database learns.
func Learning(d *DB) *learn.Database { return d.learning }

// Of returns the database of a collection.
func Of(c *Collection) *DB { return c.db }

// Inside returns a collection for those inside the database.
func Inside(c *Collection) state.Collection { return c.inside() }

// Read gives f the state of a collection, as it is seen in the space of the handle.
func Read(c *Collection, f func(v *state.View, cv *state.CollectionView) error) error {
	return c.read(f)
}

// AtView returns the collection as it is in v, until it is released.
func AtView(c *Collection, v *state.View) (at *Collection, release func()) {
	p := c.db.state.Pin(v)
	return &Collection{db: c.db, id: c.id, name: c.name, pin: p}, func() { p.Release() }
}

// OptionsOf returns the options that a database was opened with, and the defaults.
func OptionsOf(d *DB) *Options { return &d.opts.Options }

// StoreConfig returns how a database with these options opens its store.
func StoreConfig(o *Options) *store.Config {
	s := o.withDefaults()
	return &s.disk
}

// Keeper returns the keeper of the side file.
func Keeper(d *DB) *store.Keeper { return d.keeper }

// SearchTools returns what searches share.
func SearchTools(d *DB) *search.Tools { return d.search }

// WaitForCodes waits until the codes of all collections are in memory.
func WaitForCodes(d *DB, ctx context.Context) error { return d.state.Loaded(ctx) }

// CheckpointOf makes a checkpoint of the moment of a snapshot.
func CheckpointOf(ctx context.Context, d *DB, s *Snapshot, dir string, opt CheckpointOptions) error {
	return s.pin.Read(func(v *state.View) error {
		return d.copier.Checkpoint(ctx, v, dir, copies.CheckpointOptions(opt))
	})
}

// StatsOf returns the figures of a collection in a view.
var StatsOf = collectionStats

// Stored forms of parts of a schema.
var (
	StoredFields     = storedFields
	StoredModalities = storedModalities
)

// SetBulkItems sets from how many new items on a batch is stored as tables.
func SetBulkItems(n int) { bulk.LoadItems = n }

// MeasureWith sets how many queries measure the recall of an index of vectors.
func MeasureWith(n int) { learn.Queries = n }

// HoldBytes makes a batch, also one whose commit was refused, believe that it holds n bytes.
func HoldBytes(b *Batch, n int) { b.in.Bytes, b.done = n, false }
