package learn

import (
	"time"

	"github.com/fddhdb/fddhdb/db/internal/state"
)

// A Database is the learning of an open database: the learners of its spaces, and the
// builders at work. There is one for each state.Database. Safe for concurrent use.
type Database struct {
	State *state.Database // the open database; never replaced

	// Options of the background updates; they do not change. KeepUpdated updates the active
	// space of a collection once Items rows to learn from have been written to it, and every
	// Interval if there are any. 0 switches that trigger off.
	Items    int
	Interval time.Duration

	learners  learners      // the statistics in memory, by space; locks itself
	buildings buildings     // the builders at work, by space; locks itself
	wanted    chan struct{} // wakes KeepUpdated; Written fills it; holds one

	outgrown chan struct{} // wakes KeepRenewed; holds one
	renewing renewing      // the index of vectors that is being made anew; locks itself
}

// New returns the learning of a database, which need not be open yet. items and interval
// become the fields Items and Interval.
func New(d *state.Database, items int, interval time.Duration) *Database {
	return &Database{State: d, Items: items, Interval: interval, wanted: make(chan struct{}, 1), outgrown: make(chan struct{}, 1)}
}

// A Collection is a handle on a collection that learns. It is a small value to copy, and safe
// for concurrent use. All calls need an open database: the caller holds its Guard, or runs in
// a goroutine that Close waits for.
type Collection struct {
	state.Collection
	in *Database // has the learners and builders of the collection
}

// Of returns the handle with which a collection of the database learns.
func (d *Database) Of(c state.Collection) Collection { return Collection{c, d} }

// Written wakes KeepUpdated if one of the changed collections has enough to learn from, and KeepRenewed if an
// index of vectors of one has been outgrown. The state calls it after each new view, so it does not wait.
func (d *Database) Written(changed []*state.CollectionView) {
	if renewDue(changed) {
		d.wakeRenewer()
	}
	if d.updateDue(changed) {
		select {
		case d.wanted <- struct{}{}:
		default: // KeepUpdated is going to look anyway
		}
	}
}

// Dropped frees the learner of a space that has been dropped. An update that still uses the
// learner keeps it, and fails at its commit.
func (d *Database) Dropped(collection, space uint32) {
	d.learners.remove(spaceKey{collection, space})
}
