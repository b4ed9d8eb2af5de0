package state

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db/internal/record"
)

// labelsInUse keeps the ids of the labels that items of a view have: Stats and completions ask for them
// again and again, and a view never changes.
type labelsInUse struct {
	mu   sync.Mutex
	ids  []uint32
	read bool
}

// LabelsInUse returns the ids of the labels that items have, ascending, in a slice that must not be
// written to. The first call reads one record a label. r reads the snapshot of the view.
func (cv *CollectionView) LabelsInUse(r pebble.Reader) (ids []uint32, err error) {
	l := cv.inUse
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.read {
		if l.ids, err = record.LabelsInUse(r, cv.ID); err != nil {
			return nil, err
		}
		l.read = true
	}
	return l.ids, nil
}
