package db

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fddhdb/fddhdb/db/fault"
)

// InSpace returns a handle on the same collection that shows it by the codes of one
// code space, whichever is active: searches, codes of items, evaluations, encodings and
// figures are those of this space. 0 is the active one, whichever that is at each call,
// as without InSpace. What takes the number of a space can still name another
// (Query.Space), and looks at that of the handle where it is 0.
//
// What is written through the handle goes into all spaces, as always, and Train and
// Rollback do what they do through any other handle. A space that is being
// built gives ErrBusy, one that does not exist ErrNotFound; so does the handle itself
// once the space has been dropped. It costs nothing; any number of goroutines may share
// it, also in a Snapshot.
func (c *Collection) InSpace(space uint32) (*Collection, error) {
	c = c.orNone()
	in := *c
	in.space = space
	if err := in.read(func(*view, *collectionView) error { return nil }); err != nil {
		return nil, err
	}
	return &in, nil
}

// spaceOr returns the space that is named, or else that of the handle; 0 is the active
// one.
func (c *Collection) spaceOr(named uint32) uint32 { return cmp.Or(named, c.space) }

// noSpace is about a space that the collection does not have.
func (cv *collectionView) noSpace(id uint32) error {
	var numbers []string
	for _, sp := range cv.spaces {
		number := fmt.Sprint(sp.space.ID)
		if sp.space.ID == cv.active {
			number += " (active)"
		}
		numbers = append(numbers, number)
	}
	switch len(numbers) {
	case 0:
		return fault.NotFound("space %d of collection %q, which has none: it is not trained", id, cv.Name)
	case 1:
		return fault.NotFound("space %d of collection %q, which has space %s only", id, cv.Name, numbers[0])
	}
	return fault.NotFound("space %d of collection %q, which has the spaces %s", id, cv.Name, strings.Join(numbers, ", "))
}
