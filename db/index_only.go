package db

import "github.com/fddhdb/fddhdb/db/internal/state"

// An index-only collection is a copy of a learned one that has all that answers
// searches, filters and Get, and none of the vectors of its items, nor what only learning
// needs: statistics, what rows have taught, what is pending. Nothing can be written to
// it, as a write would need the features; its spaces can be activated and dropped. Its
// descriptor has a version of its own, so that what knows nothing of such collections
// does not open them.

// changeable is writable for changes of items, and of what is learned from them.
func (c *Collection) changeable() error {
	if err := c.writable(); err != nil {
		return err
	}
	return c.db.state.Read(func(v *state.View) error {
		cv, err := v.Collection(c.id, c.name)
		if err != nil {
			return err
		}
		return cv.Changeable()
	})
}
