package learn

import (
	"time"

	"github.com/fddhdb/fddhdb/db/internal/state"
)

// A Database is what learns in an open database: the learners of its spaces, and the
// builders that are at work. Safe for concurrent use.
type Database struct {
	State *state.Database

	// The active spaces are updated in the background when so many items have been written
	// to a collection, and that often; 0: not.
	Items    int
	Interval time.Duration

	learners  learners
	buildings buildings
	wanted    chan struct{} // asks the updater to look; holds one
}

// New returns the learning of a database that is to be opened.
func New(d *state.Database, items int, interval time.Duration) *Database {
	return &Database{State: d, Items: items, Interval: interval, wanted: make(chan struct{}, 1)}
}

// A Collection is a collection that learns.
type Collection struct {
	state.Collection
	in *Database
}

// Of returns a collection of the database as one that learns.
func (d *Database) Of(c state.Collection) Collection { return Collection{c, d} }

// Written hears which collections have changed, and asks the updater to look if one of them
// has something to learn from. It does not wait.
func (d *Database) Written(changed []*state.CollectionView) {
	if d.updateDue(changed) {
		select {
		case d.wanted <- struct{}{}:
		default: // it will look
		}
	}
}

// Dropped forgets the learner of a space that has been dropped.
func (d *Database) Dropped(collection, space uint32) {
	d.learners.remove(learnerKey{collection, space})
}
