package state

import (
	"fmt"

	"github.com/fddhdb/fddhdb/db/fault"
)

// expected resolves an ExpectItem. It returns an ErrConflict unless the item under the key is Old, bit for
// bit, or is absent if Old is nil, as the requests before this one leave it. It returns about how many bytes
// it has read.
func (tx *Tx) expected(s *CollectionState, ch *Change) (bytes int, err error) {
	conflict := func(how string) (int, error) {
		return 0, fmt.Errorf("%w: item %q in collection %q %s: read it again", fault.ErrConflict, ch.Item.Key, s.Name, how)
	}
	if !s.loaded() {
		return 0, fmt.Errorf("fddhdb: the codes of collection %q are not loaded", s.Name)
	}
	st, err := tx.row(s, ch.Item.Key)
	switch {
	case err != nil:
		return 0, err
	case ch.Old == nil && st.found:
		return conflict("is there already")
	case ch.Old == nil:
		return 0, nil
	case !st.found:
		return conflict("is gone")
	}
	if bytes, err = tx.fetch(s, st.row, true); err != nil {
		return 0, err
	}
	if !tx.items[itemRow{s.ID, st.row}].Equal(ch.Old) {
		return conflict("has changed")
	}
	return bytes, nil
}
