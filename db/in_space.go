package db

import (
	"cmp"

	"github.com/fddhdb/fddhdb/db/internal/state"
)

// ActiveSpace is the space that searches use; of a handle that InSpace has returned, it is
// the space of the handle.
const ActiveSpace Space = 0

// InSpace returns a handle on the same collection that shows it by the codes of one
// code space, whichever is active: searches, codes of items, evaluations, encodings and
// statistics are those of this space. ActiveSpace is the active one, whichever that is at
// each call, as without InSpace. A call that is given a Space other than ActiveSpace looks
// at that one nevertheless.
//
// What is written through the handle goes into all spaces, as always, and Train and
// Rollback do what they do through any other handle. A space that is being
// built gives ErrBusy, one that does not exist ErrNotFound; so does the handle itself
// once the space has been dropped. It costs nothing; any number of goroutines may share
// it, also in a Snapshot.
func (c *Collection) InSpace(space Space) (*Collection, error) {
	c = c.orNone()
	in := *c
	in.space = uint32(space)
	if err := in.read(func(*state.View, *state.CollectionView) error { return nil }); err != nil {
		return nil, err
	}
	return &in, nil
}

// spaceOr returns the number of the space that is named, or else of that of the handle; 0
// is the active one.
func (c *Collection) spaceOr(named Space) uint32 { return cmp.Or(uint32(named), c.space) }
