package metamorphic

import (
	"context"
	"errors"
	"fmt"

	"github.com/fddhdb/fddhdb/db"
)

// importCommit commits an import. Then all of it is visible.
func (h *history) importCommit(op *Op) error {
	st, _, err := h.resumed(op)
	if err != nil {
		return err
	}
	if op.Import != nil && op.Import.Cancel && !st.committed {
		ctx, cancel := context.WithCancel(h.ctx)
		cancel()
		if err := st.im.Commit(ctx); err == nil {
			return h.imported(st)
		} else if !errors.Is(err, context.Canceled) {
			return err
		}
		if err := h.check(nil); err != nil {
			return fmt.Errorf("of an import whose commit was cancelled: %w", err)
		}
	}
	if op.Crash && h.mem != nil {
		return h.crashAtCommit(op, st)
	}
	if err := st.im.Commit(h.ctx); err != nil {
		return err
	}
	return h.imported(st)
}

// imported takes over that an import was committed, and its staging removed.
func (h *history) imported(st *staging) error {
	delete(h.imports, source{st.born, st.source})
	if err := errors.Join(st.ended(), h.checkStaged()); err != nil {
		return err
	}
	return h.visible(st)
}

// visible makes the items of a committed import visible in the model. After a crash
// they may be visible already.
func (h *history) visible(st *staging) error {
	if st.committed {
		return h.check(nil)
	}
	next, t := h.now.fork(), touched{}
	c := next.edit(st.in)
	c.register(st.labels)
	for _, r := range st.rows {
		if r.it != nil {
			own := *r.it
			t[st.in] = append(t[st.in], c.place(r.key, &own))
		}
	}
	return h.written(next, t, !st.empty())
}

// crashAtCommit commits an import and continues with what a crash in the middle leaves.
// That is all of it, or what had been staged; the database says which.
func (h *history) crashAtCommit(op *Op, st *staging) error {
	var left *memory
	h.mem.at(op.N, func() { left = h.mem.crash(op) })
	err := st.im.Commit(h.ctx)
	h.mem.at(0, nil)
	if err != nil {
		return err
	}
	if left == nil { // the commit has fewer changes than that
		return h.imported(st)
	}
	h.lost()
	if err := h.close(); err != nil {
		return err
	}
	h.mem = left
	exact := !h.options.NoSync || h.knows()
	before, seen, err := h.glimpse(st)
	if err != nil {
		return err
	}
	if err := h.open(nil); err != nil {
		return err
	}
	staged, committed, err := h.stagedNow(st)
	if err != nil || staged != before || committed != seen {
		return wrong(err, "the import is staged: %v, and committed: %v; opened for reading only it was %v and %v", staged, committed, before, seen)
	}
	if !staged {
		delete(h.imports, source{st.born, st.source})
	}
	switch is := committed || !staged; {
	case st.committed && !is:
		return errors.New("a crash has taken away that an import was committed")
	case st.committed || !is || st.empty(): // nothing has become visible
		err = h.recovered(exact)
	default:
		h.past = nil // the commit is durable, and so is everything before it
		if err = h.visible(st); err == nil {
			err = h.checkWorld(h.now, h.d.Collection)
		}
	}
	if committed {
		st.committed, st.least = true, len(st.rows)
	}
	return errors.Join(err, h.checkStaged(), h.verify(nil))
}

// stagedNow reports whether an import is staged, and whether it is committed then.
func (h *history) stagedNow(st *staging) (staged, committed bool, err error) {
	all, err := h.d.StagedImports(h.ctx)
	for _, s := range all {
		if s.Collection == st.in && s.Source == st.source {
			return true, s.Committed, err
		}
	}
	return false, false, err
}

// glimpse is stagedNow for a closed database, which it opens read-only.
func (h *history) glimpse(st *staging) (staged, committed bool, err error) {
	dir, o := h.dbOptions(h.name)
	o.ReadOnly = true
	d, err := db.Open(dir, o)
	if err != nil {
		return false, false, err
	}
	staged, committed, err = (&history{ctx: h.ctx, d: d}).stagedNow(st)
	return staged, committed, errors.Join(err, d.Close())
}
