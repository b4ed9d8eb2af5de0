package db

import (
	"fmt"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// An index-only collection is a copy of a learned one that has all that answers
// searches, filters and Get, and none of the vectors of its items, nor what only learning
// needs: statistics, what rows have taught, what is pending. Nothing can be written to
// it, as a write would need the features; its spaces can be activated and dropped. Its
// descriptor has a version of its own, so that what knows nothing of such collections
// does not open them.

// versionIndexOnly is the version of the descriptor of an index-only collection, that of
// all others being 0.
const versionIndexOnly = 1

// checkVersion checks that the version of a descriptor is known, and that of what it
// describes.
func (d *descriptor) checkVersion() error {
	switch {
	case d.Version > versionIndexOnly:
		return &codec.VersionError{What: "descriptor", Found: d.Version, Newest: versionIndexOnly}
	case d.Version < record.DescriptorVersion:
		return fmt.Errorf("version %d", d.Version)
	case d.IndexOnly != (d.Version == versionIndexOnly):
		return fmt.Errorf("version %d, index-only: %v", d.Version, d.IndexOnly)
	}
	return nil
}

// indexOnly returns the descriptor of an index-only copy. Collections of given codes have
// nothing that could be left out.
func (d *descriptor) indexOnly() *descriptor {
	if d.codesOnly() {
		return d
	}
	only := *d
	only.Version, only.IndexOnly = versionIndexOnly, true
	return &only
}

// changeable refuses changes of items, and of what is learned from them.
func (d *descriptor) changeable() error {
	if !d.IndexOnly {
		return nil
	}
	return fmt.Errorf("%w: collection %q is index-only, a copy without the vectors that this takes: write to the database that it is a copy of, or restore a full backup",
		fault.ErrReadOnly, d.Name)
}

// changeable is writable for changes of items, and of what is learned from them.
func (c *Collection) changeable() error {
	if err := c.writable(); err != nil {
		return err
	}
	return c.db.read(func(v *view) error {
		cv, err := v.collection(c.id, c.name)
		if err != nil {
			return err
		}
		return cv.changeable()
	})
}

// lacksVectors is about vectors of items of an index-only collection that are asked for.
func (d *descriptor) lacksVectors(what string) error {
	return fault.Invalid("collection %q is index-only: its items have no vectors %s", d.Name, what)
}
