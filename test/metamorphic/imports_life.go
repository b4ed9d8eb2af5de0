package metamorphic

import (
	"errors"
	"fmt"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

// This file has what happens to staged imports when a database is closed, crashes or
// drops collections.

// gone reports whether the collection of a staging was dropped.
func (h *history) gone(st *staging) bool {
	c := h.now.collections[st.in]
	return c == nil || c.born != st.born
}

// forget removes interrupted stagings for which which is true.
func (h *history) forget(which func(*staging) bool) {
	for id, st := range h.imports {
		if st.im == nil && which(st) {
			delete(h.imports, id)
		}
	}
}

// ages returns the age from which on staged imports are removed: all of them, or only
// those that nobody can continue.
func ages(all bool) time.Time {
	if all {
		return time.Now().Add(time.Hour)
	}
	return time.Time{}
}

// cleared notes which stagings go when an import begins.
func (h *history) cleared(op *Op) {
	if op.imports() && h.now.collections[op.In] != nil {
		h.forget(h.gone)
	}
}

// lost notes that a crash has interrupted all imports. Of the rows that were put since
// an import was begun or continued, the first ones may be left.
func (h *history) lost() {
	for _, st := range h.imports {
		st.im = nil
	}
}

// closed checks that closing the database has ended all open imports, with everything
// that was put into them.
func (h *history) closed() error {
	for _, st := range h.imports {
		if st.im == nil {
			continue
		}
		for what, err := range map[string]error{
			"put": st.im.Put(&db.Item{}), "commit": st.im.Commit(h.ctx), "discard": st.im.Discard(), "close": st.im.Close(),
		} {
			if !errors.Is(err, db.ErrClosed) && !(st.committed && what == "put") { // nothing can be put into a committed one
				return fmt.Errorf("%s of an import into a database that is closed: %v", what, err)
			}
		}
		st.im, st.least = nil, len(st.rows)
	}
	return nil
}

// orphaned checks that imports into a dropped collection cannot continue, and ends
// them.
func (h *history) orphaned() error {
	for _, st := range h.imports {
		if st.im == nil || !h.gone(st) {
			continue
		}
		if !st.committed {
			if err := st.im.Put(&db.Item{}); !errors.Is(err, db.ErrNotFound) {
				return fmt.Errorf("an item is put to an import into a collection that was dropped: %v", err)
			}
			if err := st.im.Commit(h.ctx); !errors.Is(err, db.ErrNotFound) {
				return fmt.Errorf("an import into a collection that was dropped is committed: %v", err)
			}
		}
		if err := st.im.Close(); err != nil {
			return err
		}
		st.im, st.least = nil, len(st.rows)
	}
	return h.checkStaged()
}
