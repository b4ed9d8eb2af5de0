package state

import (
	"context"

	"github.com/fddhdb/fddhdb/db/fault"
)

// A Collection is a handle on a collection of an open database, for packages that write to it or learn from
// it. It is a plain value and holds nothing open. If the collection has been dropped, its methods return an
// ErrNotFound. Read and Loaded enter the Guard; callers of the other methods have entered it, or run in the
// background.
type Collection struct {
	DB   *Database
	ID   uint32 // see record.Descriptor.ID; it identifies the collection
	Name string // for error messages
}

// Read gives f the present view of the database and of the collection. Both views and the database stay open
// while f runs.
func (c Collection) Read(f func(v *View, cv *CollectionView) error) error {
	return c.DB.Read(func(v *View) error {
		cv, err := v.Collection(c.ID, c.Name)
		if err != nil {
			return err
		}
		return f(v, cv)
	})
}

// Do is Committer.Do with the state of the collection. If the collection has been dropped, Do and the methods
// below return an ErrNotFound.
func (c Collection) Do(ctx context.Context, bytes int, f func(tx *Tx, s *CollectionState) error) error {
	return c.DB.Committer.Do(ctx, bytes, func(tx *Tx) error {
		return c.withState(func(s *CollectionState) error { return f(tx, s) })
	})
}

// Free is Committer.Free with the state of the collection.
func (c Collection) Free(ctx context.Context, f func(tx *Tx, s *CollectionState) error) error {
	return c.DB.Committer.Free(ctx, func(tx *Tx) error {
		return c.withState(func(s *CollectionState) error { return f(tx, s) })
	})
}

// Load is Committer.Load with the state of the collection.
func (c Collection) Load(ctx context.Context, f func(tx *Tx, s *CollectionState) error) error {
	return c.DB.Committer.Load(ctx, func(tx *Tx) error {
		return c.withState(func(s *CollectionState) error { return f(tx, s) })
	})
}

// Look is Committer.Look with the state of the collection.
func (c Collection) Look(ctx context.Context, f func(s *CollectionState) error) error {
	return c.DB.Committer.Look(ctx, func() error { return c.withState(f) })
}

// Show is Committer.Show with the state of the collection.
func (c Collection) Show(ctx context.Context, f func(s *CollectionState) error) error {
	return c.DB.Committer.Show(ctx, func() error { return c.withState(f) })
}

// withState calls f, in the committer, with the state of the collection.
func (c Collection) withState(f func(s *CollectionState) error) error {
	s := c.DB.Committer.States[c.ID]
	if s == nil {
		return fault.NotFound("collection %q", c.Name)
	}
	return f(s)
}
