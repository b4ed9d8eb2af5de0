package db

import (
	"time"

	"github.com/fddhdb/fddhdb/db/internal/state"
)

// A learning is what learns in an open database: the learners of its spaces, and the
// builders that are at work. Safe for concurrent use.
type learning struct {
	State *state.Database

	// The active spaces are updated in the background when so many items have been written
	// to a collection, and that often; 0: not.
	Items    int
	Interval time.Duration

	learners  learners
	buildings buildings
	wanted    chan struct{} // asks the updater to look; holds one
}

// NewLearning returns the learning of a database that is to be opened.
func NewLearning(d *state.Database, items int, interval time.Duration) *learning {
	return &learning{State: d, Items: items, Interval: interval, wanted: make(chan struct{}, 1)}
}

// A lcollection is a collection that learns.
type lcollection struct {
	state.Collection
	in *learning
}

// Of returns a collection of the database as one that learns.
func (d *learning) Of(c state.Collection) lcollection { return lcollection{c, d} }

// Written hears which collections have changed, and asks the updater to look if one of them
// has something to learn from. It does not wait.
func (d *learning) Written(changed []*state.CollectionView) {
	if d.updateDue(changed) {
		select {
		case d.wanted <- struct{}{}:
		default: // it will look
		}
	}
}

// Dropped forgets the learner of a space that has been dropped.
func (d *learning) Dropped(collection, space uint32) {
	d.learners.remove(learnerKey{collection, space})
}
