package state

import (
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// Records name labels by their ids, so another name is one record, and items, codes and models
// stay as they are. A label that no item has any more keeps its id, for the case that an item
// brings it again; to callers it does not exist.

// LabelInUse returns the id of a label and the rows that have it, in a bitmap of the caller's
// own. ErrNotFound: no item has it. r is the store as the last commit has left it.
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

// RenameLabel gives a label, which items have, another name. ErrExists: items have a label of
// that name. Where only earlier items had one, that label loses its name for good, and with it
// what models have learned of it: the old name is free, and models know nothing of it.
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
			return fmt.Errorf("%w: label %q in collection %q has %d items: merge %q into it instead", fault.ErrExists, record.Shortened(name), s.Name, n, record.Shortened(old))
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

// Relabelled notes in memory that rows have got other labels, in a commit of tables that has
// also put them into the set codec.SetRecode of some spaces. The caller calls Touch.
func (s *CollectionState) Relabelled(rows *roaring.Bitmap, recode []*SpaceState) {
	s.ForgetLabelsInUse()
	if s.Changed != nil {
		s.Changed.Or(rows)
	}
	for _, sp := range s.Spaces {
		if sp.Changed != nil {
			sp.Changed.Or(rows)
		}
	}
	for _, sp := range recode {
		sp.Recode.Edit().Or(rows)
		sp.Relabellings++
		if sp.HasStatistics() {
			sp.Written += int(rows.GetCardinality())
		}
	}
}
