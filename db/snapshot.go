package db

import (
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// A Snapshot is the database as it was at one moment: items, index and model.
// Its collections can be read as any others, by any number of goroutines, and do
// not change; writing to them gives ErrReadOnly. Close it when it is no longer
// needed, as it keeps disk space and memory of what has been replaced since.
type Snapshot struct {
	pin *state.Pin
	db  *DB
}

// Snapshot returns the database as it is now. It costs next to nothing.
func (d *DB) Snapshot() (*Snapshot, error) {
	v, done, err := d.state.Acquire()
	if err != nil {
		return nil, err
	}
	defer done()
	v.Acquire()
	return &Snapshot{d.state.Pin(v), d}, nil
}

// Collection returns the collection of that name as it was, or ErrNotFound.
func (s *Snapshot) Collection(name string) (*Collection, error) {
	var c *Collection
	err := s.pin.Read(func(v *state.View) error {
		id, ok := v.IDs.Get(name)
		if !ok {
			return fault.NotFound("collection %q", name)
		}
		c = &Collection{db: s.db, id: id, name: name, pin: s.pin}
		return nil
	})
	return c, err
}

// Close frees what the snapshot holds. Its collections return ErrClosed then, as
// does a second call.
func (s *Snapshot) Close() error {
	if !s.pin.Release() {
		return state.ErrReleased
	}
	return nil
}
