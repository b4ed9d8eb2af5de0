package metamorphic

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/test/metamorphic/program"
)

// A space is a code space in the model: the codes of the items in it.
type space struct {
	number     db.Space
	name       string // of the operation that made it
	bits       int
	modalities []string // modalities that the model knows
	revision   uint32
	free       bool // an update in the background may have made later revisions

	labelFree bool // learned without labels: nothing in it is updated

	known   map[string]bool // labels that have a code
	settled bool            // false: known is not known
	moving  bool            // it was updated while others wrote

	labelCodes map[string]string // code of each set of known labels that was seen
	codes      map[string]*coded // codes of the items, by key

	// These belong to a collection of given codes. ages says when each code was given
	// to the first of its present items, carried how many items have it.
	ages    map[string]int
	carried map[string]int
	nextAge int
}

// A coded is what is known of the code of an item. It does not change.
type coded struct {
	code     string // "" if it has none, or it is not known yet
	has      bool   // it has one
	labelled bool   // the code comes from its labels
	settled  bool   // false: the database has to tell the code
}

func (sp *space) clone() *space {
	out := *sp
	out.known = maps.Clone(sp.known)
	out.labelCodes, out.codes = maps.Clone(sp.labelCodes), maps.Clone(sp.codes)
	out.ages, out.carried = maps.Clone(sp.ages), maps.Clone(sp.carried)
	return &out
}

// space returns the space with a number, and the active one for 0; nil if there is
// none.
func (c *collection) space(number db.Space) *space {
	if number == 0 {
		number = c.active
	}
	for _, sp := range c.spaces {
		if sp.number == number {
			return sp
		}
	}
	return nil
}

// noSpace is a number that no space has.
const noSpace = 4_000_000_000

// numberOf returns the number of the space that an operation names.
func (c *collection) numberOf(name string) db.Space {
	if name == "" {
		return 0
	}
	for _, sp := range c.spaces {
		if sp.name == name {
			return sp.number
		}
	}
	return noSpace
}

// give gives an item of a collection of given codes its code; "" takes it away.
func (sp *space) give(key, code string) {
	if sp.ages == nil {
		return
	}
	if old := sp.codes[key]; old != nil {
		was := old.code
		if was == code {
			return
		}
		if sp.carried[was]--; sp.carried[was] == 0 {
			delete(sp.carried, was)
			delete(sp.ages, was)
		}
	}
	if code == "" {
		return
	}
	if sp.carried[code]++; sp.carried[code] == 1 {
		sp.ages[code] = sp.nextAge
		sp.nextAge++
	}
	sp.codes[key] = &coded{code: code, has: true, settled: true}
}

// labelSet returns the known labels of an item as one string; "" if it has none.
func (sp *space) labelSet(it *item) string {
	var known []string
	for _, l := range it.labels {
		if sp.known[l] {
			known = append(known, l)
		}
	}
	slices.Sort(known)
	return strings.Join(known, "\n")
}

// code returns the code of an item, and whether it has one.
func (sp *space) code(key string) (string, bool) {
	if c := sp.codes[key]; c != nil {
		return c.code, c.has
	}
	return "", false
}

// distinct returns the number of distinct codes.
func (sp *space) distinct() int {
	seen := map[string]bool{}
	for _, c := range sp.codes {
		if c.has {
			seen[c.code] = true
		}
	}
	return len(seen)
}

// coded returns the number of items with a code.
func (sp *space) coded() int {
	n := 0
	for _, c := range sp.codes {
		if c.has {
			n++
		}
	}
	return n
}

func (h *history) activate(op *program.Op) error {
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

func (h *history) rollback(op *program.Op) error {
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

func (h *history) dropSpace(op *program.Op) error {
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
	in, _ := handle.InSpace(number, 0)
	if err := expect(handle.DropSpace(h.ctx, number), want); err != nil {
		return err
	}
	if _, err := in.Stats(h.ctx); !errors.Is(err, db.ErrNotFound) {
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
func (h *history) revisionOf(sp *space, op *program.Op) uint32 {
	if sp == nil || int(sp.revision) <= op.Back {
		return 1
	}
	return sp.revision - uint32(op.Back)
}

// keeps reports whether a revision must exist: the first, and the latest eight.
func (sp *space) keeps(revision uint32) bool {
	return sp.ages == nil && (revision == 1 || revision <= sp.revision && revision+8 > sp.revision)
}

func (h *history) restoreRevision(op *program.Op) error {
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
