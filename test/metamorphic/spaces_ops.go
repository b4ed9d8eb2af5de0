package metamorphic

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/db"
)

func (h *history) activate(op *Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	number := c.numberOf(op.Space)
	var want error
	sp := c.space(number) // for number 0 the active space, to which nothing happens
	if sp == nil {
		want = db.ErrNotFound
	}
	if err := expect(handle.Activate(h.ctx, number), want); err != nil {
		return err
	}
	number = sp.number
	return h.activated(op.In, number)
}

// activated takes over that a space has become the active one.
func (h *history) activated(name string, number db.Space) error {
	next := h.now.fork()
	c := next.edit(name)
	changed := number != c.active
	if changed {
		c.active, c.previous = number, c.active
	}
	return h.commit(next, changed)
}

func (h *history) rollback(op *Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	number, err := handle.Rollback(h.ctx)
	if c.previous == 0 {
		return expect(err, db.ErrInvalid)
	}
	if err != nil || number != c.previous {
		return wrong(err, "space %d is active, want %d", number, c.previous)
	}
	return h.activated(op.In, number)
}

func (h *history) dropSpace(op *Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	number := c.numberOf(op.Space)
	if number == 0 {
		number = c.active
	}
	var want error
	switch {
	case number == c.active: // 0 before a training
		want = db.ErrInvalid
	case c.space(number) == nil:
		want = db.ErrNotFound
	}
	in, _ := handle.InSpace(number)
	if err := expect(handle.DropSpace(h.ctx, number), want); err != nil {
		return err
	}
	if _, err := in.Stats(); !errors.Is(err, db.ErrNotFound) {
		return fmt.Errorf("a handle on a space that was dropped: %v", err)
	}
	next := h.now.fork()
	c = next.edit(op.In)
	c.spaces = slices.DeleteFunc(c.spaces, func(sp *space) bool { return sp.number == number })
	if c.previous == number {
		c.previous = 0
	}
	return h.commit(next, true)
}

// revisionOf returns the revision that an operation means.
func (h *history) revisionOf(sp *space, op *Op) uint32 {
	if sp == nil || int(sp.revision) <= op.Back {
		return 1
	}
	return sp.revision - uint32(op.Back)
}

func (h *history) pin(op *Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	number := c.numberOf(op.Space)
	sp := c.space(number)
	revision := h.revisionOf(sp, op)
	err = handle.PinRevision(h.ctx, number, revision, op.Pinned)
	if h.learns() && errors.Is(err, db.ErrNotFound) {
		return errPassed
	}
	want := error(nil)
	switch {
	case number == 0 && sp == nil:
		want = db.ErrNoModel
	case sp == nil || !sp.keeps(revision):
		want = db.ErrNotFound
	}
	if err := expect(err, want); err != nil {
		return err
	}
	next := h.now.fork()
	next.edit(op.In).space(number).kept[revision] = op.Pinned
	return h.commit(next, true)
}

// keeps reports whether a revision must exist: the first, the latest eight, and the
// pinned ones.
func (sp *space) keeps(revision uint32) bool {
	_, is := sp.kept[revision]
	return sp.ages == nil && (is || revision == 1 || revision <= sp.revision && revision+8 > sp.revision)
}

func (h *history) restoreRevision(op *Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	number := c.numberOf(op.Space)
	sp := c.space(number)
	revision := h.revisionOf(sp, op)
	u, err := handle.RestoreRevision(h.ctx, number, revision)
	want := error(nil)
	switch {
	case c.codesOnly():
		want = db.ErrInvalid
	case number == noSpace:
		want = db.ErrNotFound
	case sp == nil:
		want = db.ErrNoModel
	case h.learns() && (errors.Is(err, db.ErrBusy) || errors.Is(err, db.ErrNotFound)):
		return errPassed
	case errors.Is(err, db.ErrInvalid):
		return errPassed // the old revision knows fewer labels
	case !sp.keeps(revision):
		want = db.ErrNotFound
	}
	if err := expect(err, want); err != nil {
		return err
	}
	if revision == sp.revision != (u.Revision == sp.revision) && !h.learns() {
		return fmt.Errorf("revision %d of %d restored: %+v", revision, sp.revision, u)
	}
	next := h.now.fork()
	next.edit(op.In).space(number).revision = u.Revision
	return h.commit(next, u.Revised)
}
