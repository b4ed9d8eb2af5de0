package state

import (
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db/internal/record"
)

// labelsInUse caches the ids of the labels that items of a view have. Stats and completions often ask for
// them, and a view never changes. A later view starts from the cache of an earlier one.
type labelsInUse struct {
	ids atomic.Pointer[roaring.Bitmap] // do not write to it; nil: not read yet
	mu  sync.Mutex                     // held while they are read

	// Ids of an earlier view, and the labels whose sets of rows have changed since. nil: unknown.
	base, changed *roaring.Bitmap
}

// next returns the labelsInUse of the view after the view of l. l may be nil. changed has the labels whose
// sets of rows have changed since; nil: any may have.
func (l *labelsInUse) next(changed *roaring.Bitmap) *labelsInUse {
	const most = 1000 // changed labels: beyond that reading all of them takes not much longer
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
// first call reads one record a label; if an earlier view has been asked, only the records of labels changed
// since. r reads the snapshot of the view.
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

// ForgetLabelsInUse says that any label may be in use in the next view, as after a commit of tables.
func (s *CollectionState) ForgetLabelsInUse() { s.relabelled = nil }
