package state

import (
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db/internal/record"
)

// labelsInUse keeps the ids of the labels that items of a view have: Stats and completions ask for them
// again and again, and a view never changes. A later view begins with what is known of it.
type labelsInUse struct {
	ids atomic.Pointer[roaring.Bitmap] // not written to; nil: nobody has asked yet
	mu  sync.Mutex                     // held while they are read

	// Those of an earlier view, and the labels whose sets of rows have changed since. nil: none is known.
	base, changed *roaring.Bitmap
}

// next returns the labelsInUse of the view after that of l, which may be nil. changed are the labels whose
// sets of rows have changed since; nil: any of them may have.
func (l *labelsInUse) next(changed *roaring.Bitmap) *labelsInUse {
	const most = 1000 // changed labels: to read all of them takes not much longer then
	switch {
	case l == nil || changed == nil:
		return new(labelsInUse)
	case changed.IsEmpty():
		return l
	}
	base := l.ids.Load()
	if base == nil && l.base != nil {
		base, changed = l.base, roaring.Or(l.changed, changed)
	}
	if base == nil || changed.GetCardinality() > most {
		return new(labelsInUse)
	}
	return &labelsInUse{base: base, changed: changed}
}

// LabelsInUse returns the ids of the labels that items have, in a bitmap that must not be written to. The
// first call reads one record a label, or those of the labels that have changed since a call of an
// earlier view. r reads the snapshot of the view.
func (cv *CollectionView) LabelsInUse(r pebble.Reader) (*roaring.Bitmap, error) {
	l := cv.inUse
	if ids := l.ids.Load(); ids != nil {
		return ids, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ids := l.ids.Load(); ids != nil {
		return ids, nil
	}
	ids := roaring.New()
	if l.base == nil {
		all, err := record.LabelsInUse(r, cv.ID)
		if err != nil {
			return nil, err
		}
		ids.AddMany(all)
	} else {
		ids = l.base.Clone()
		for it := l.changed.Iterator(); it.HasNext(); {
			id := it.Next()
			used, err := record.LabelInUse(r, cv.ID, id)
			if err != nil {
				return nil, err
			}
			if ids.Add(id); !used {
				ids.Remove(id)
			}
		}
	}
	l.ids.Store(ids)
	return ids, nil
}

// ForgetLabelsInUse says that any labels may be in use in the next view, as after a commit of tables.
func (s *CollectionState) ForgetLabelsInUse() { s.relabelled = nil }
