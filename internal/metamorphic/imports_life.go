package metamorphic

import (
	"errors"
	"fmt"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

// What becomes of staged imports in the life of a database.

// gone reports whether the collection of a staging is not there any more.
func (h *history) gone(st *staging) bool {
	c := h.now.collections[st.in]
	return c == nil || c.born != st.born
}

// forget removes stagings that nobody goes on with.
func (h *history) forget(which func(*staging) bool) {
	for id, st := range h.imports {
		if st.im == nil && which(st) {
			delete(h.imports, id)
		}
	}
}

// ages returns up to when what is staged is to be removed: all of it, or nothing but what
// nobody can go on with.
func ages(all bool) time.Time {
	if all {
		return time.Now().Add(time.Hour)
	}
	return time.Time{}
}

// cleared notes what goes when an import is begun.
func (h *history) cleared(op *Op) {
	if op.imports() && h.now.collections[op.In] != nil {
		h.forget(h.gone)
	}
}

// lost notes that a crash has ended all imports: of what was put since they were begun or
// gone on with, the first so many rows may be left.
func (h *history) lost() {
	for _, st := range h.imports {
		st.im = nil
	}
}

// closed checks that imports that went on when the database was closed have ended, with all
// that was put to them.
func (h *history) closed() error {
	for _, st := range h.imports {
		if st.im == nil {
			continue
		}
		for what, err := range map[string]error{
			"put": st.im.Put(&db.Item{}), "commit": st.im.Commit(h.ctx), "discard": st.im.Discard(), "close": st.im.Close(),
		} {
			if !errors.Is(err, db.ErrClosed) && !(st.committed && what == "put") { // to which nothing can be put anyway
				return fmt.Errorf("%s of an import into a database that is closed: %v", what, err)
			}
		}
		st.im, st.least = nil, len(st.rows)
	}
	return nil
}

// orphaned checks that imports into a collection that has been dropped cannot go on, and ends
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
