package state

import (
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// Records name labels by id, so renaming a label changes one record; items, codes and models stay as they
// are. A label without items keeps its id in case an item brings it again; callers do not see it.

// LabelInUse returns the id of a label and its rows, in a new bitmap. ErrNotFound: no item has it. r is the
// store as of the last commit.
func (s *CollectionState) LabelInUse(r pebble.Reader, name string) (id uint32, rows *roaring.Bitmap, err error) {
	id, known := s.Labels.ID(name)
	if known {
		if rows, err = record.LabelRows(r, s.ID, id); err != nil {
			return 0, nil, err
		}
	}
	if !known || rows.IsEmpty() {
		return 0, nil, fault.NotFound("label %q in collection %q: no item has it", record.Shortened(name), s.Name)
	}
	return id, rows, nil
}

// RenameLabel renames a label that items have. ErrExists: items have a label of the new name. If only past
// items had such a label, it loses its name for good, and with it what models have learned of it. Models do
// not know the old name, which becomes free.
func (tx *Tx) RenameLabel(s *CollectionState, old, name string) error {
	id, _, err := s.LabelInUse(tx.Committer.Reader(), old)
	if err != nil {
		return err
	}
	renamed := s.Labels.Renamed(id, name)
	if other, known := s.Labels.ID(name); known && other != id {
		rows, err := record.LabelRows(tx.Committer.Reader(), s.ID, other)
		if err != nil {
			return err
		}
		if n := rows.GetCardinality(); n > 0 {
			return fmt.Errorf("%w: label %q in collection %q has %d items: give these the label %q, or those of it the other", fault.ErrExists, record.Shortened(name), s.Name, n, record.Shortened(old))
		}
		if err := tx.records.Label(s.ID, other, record.NoLabel(other)); err != nil {
			return err
		}
	}
	if err := tx.records.Label(s.ID, id, name); err != nil {
		return err
	}
	s.Labels = renamed
	tx.Committer.Touch(s)
	return nil
}
