package metamorphic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

// A staging is an import in the folder of the database, as far as it has been staged.
// Nothing of it is visible. It belongs to that folder alone, and no copy has it.
type staging struct {
	in     string
	born   int    // of the collection
	source string // the name in the operation
	uuid   string // of the database; a database with another one stages anew
	labels []string
	rows   []stagedRow

	least     int  // rows that are durable; of the others a crash leaves the first ones
	committed bool // it is committed, and a crash has prevented its removal

	im *db.Import // nil: it is interrupted
}

// A stagedRow is an item of an import, or a skipped row.
type stagedRow struct {
	key string
	it  *item // nil: the row is skipped
	why string
}

// A source identifies a staging.
type source struct {
	born int // of the collection
	name string
}

// long stands for a long reason, which is cut off. With it, thousands of skipped rows
// fill chunks that are written before the import is closed.
const long = "<long>"

// reason returns the reason that is given for a skipped row, and the reason that is
// kept.
func reason(text string) (given, kept string) {
	if text == long {
		return strings.Repeat("w", 2000), strings.Repeat("w", 1024)
	}
	return text, text
}

func (st *staging) items() int {
	n := 0
	for _, r := range st.rows {
		if r.it != nil {
			n++
		}
	}
	return n
}

// empty reports whether there is nothing to commit.
func (st *staging) empty() bool { return len(st.labels)+st.items() == 0 }

// importing begins or continues an import, and puts items.
func (h *history) importing(op *Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	st, err := h.goOn(op, c, handle)
	if err != nil {
		return err
	}
	for i := range op.Ops {
		if err := st.stage(&op.Ops[i], c); err != nil {
			return fmt.Errorf("%s %d of the import: %w", op.Ops[i].Do, i, err)
		}
	}
	if st.im.Rows() != len(st.rows) || st.im.Items() != st.items() {
		return fmt.Errorf("%d rows and %d items have been put, want %d and %d", st.im.Rows(), st.im.Items(), len(st.rows), st.items())
	}
	if n, err := handle.Count(); err != nil || n != len(c.items) {
		return wrong(err, "%d items are visible while an import goes on, want %d", n, len(c.items))
	}
	return h.checkStaged()
}

// goOn returns an import to continue: one that is open, one that was interrupted, or a
// new one.
func (h *history) goOn(op *Op, c *collection, handle *db.Collection) (*staging, error) {
	id := source{c.born, op.Name}
	st := h.imports[id]
	how := op.Import
	if how == nil {
		how = &Import{}
	}
	var heard []stagedRow
	var at []int
	im, err := handle.NewImport(h.ctx, db.ImportOptions{
		Source: op.Name, Restart: how.Restart, InParts: how.InParts,
		Skipped: func(row int, why string) { heard, at = append(heard, stagedRow{why: why}), append(at, row) },
	})
	switch {
	case op.Name == "":
		return nil, wrong(expect(err, db.ErrInvalid), "an import of nothing")
	case st != nil && st.im != nil && !h.refuses(op):
		if !errors.Is(err, db.ErrBusy) {
			return nil, fmt.Errorf("an import that goes on is begun again: %v", err)
		}
		return st, nil
	case err != nil:
		return nil, err
	}
	h.forget(h.gone)
	if st == nil || how.Restart || st.uuid != h.d.UUID() {
		st = &staging{in: op.In, born: c.born, source: op.Name, uuid: h.d.UUID()}
		h.imports[id] = st
	}
	st.im = im
	rows := im.Rows()
	if rows < st.least || rows > len(st.rows) || st.committed && rows != len(st.rows) {
		return nil, fmt.Errorf("an import goes on at row %d, of %d that were put, of which %d are durable; it has been committed: %v",
			rows, len(st.rows), st.least, st.committed)
	}
	st.rows, st.least = st.rows[:rows], rows
	if im.Items() != st.items() {
		return nil, fmt.Errorf("an import goes on at row %d with %d items, want %d", rows, im.Items(), st.items())
	}
	if err := st.sameSkips(at, heard); err != nil {
		return nil, err
	}
	if rows == 0 && !st.committed {
		err = im.RegisterLabels(st.labels) // it is not known whether they are durable
	}
	return st, err
}

// sameSkips compares the skipped rows that an import tells with the right ones.
func (st *staging) sameSkips(at []int, heard []stagedRow) error {
	i := 0
	for row, r := range st.rows {
		if r.it != nil || st.committed && i == len(at) { // rows of a committed import may be removed already
			continue
		}
		if i == len(at) || at[i] != row || heard[i] != r {
			return fmt.Errorf("rows %d are skipped, of %d rows; row %d is for %.20q", at, len(st.rows), row, r.why)
		}
		i++
	}
	if i != len(at) {
		return fmt.Errorf("rows %d are skipped, want %d of them", at, i)
	}
	return nil
}

// stage puts an item, skips rows or registers labels.
func (st *staging) stage(op *Op, c *collection) error {
	if st.committed {
		if err := st.im.Skip("late"); !errors.Is(err, db.ErrInvalid) {
			return fmt.Errorf("more is put to an import that has been committed: %v", err)
		}
		return nil
	}
	switch op.Do {
	case "put":
		var want error
		if c.refused(op) {
			want = db.ErrInvalid
		}
		if err := expect(st.im.Put(c.given(op.Key, op.Item)), want); err != nil {
			return passed(err)
		}
		st.rows = append(st.rows, stagedRow{key: op.Key, it: c.made(op.Item)})
	case "skip":
		given, kept := reason(op.Key)
		for range max(op.N, 1) {
			if err := st.im.Skip(given); err != nil {
				return err
			}
			st.rows = append(st.rows, stagedRow{why: kept})
		}
	case "labels":
		if len(st.rows) > 0 { // labels come first
			return nil
		}
		st.labels = append(st.labels, op.Keys...)
		return st.im.RegisterLabels(op.Keys)
	default:
		return fmt.Errorf("an import has no operation %q", op.Do)
	}
	return nil
}

// resumed returns an import that was begun. It continues it if it is interrupted.
func (h *history) resumed(op *Op) (*staging, *collection, error) {
	c, handle, err := h.collection(op)
	if err != nil {
		return nil, nil, err
	}
	st := h.imports[source{c.born, op.Name}]
	if st == nil {
		return nil, nil, errPassed
	}
	if st.im == nil {
		st, err = h.goOn(&Op{Do: op.Do, In: op.In, Name: op.Name}, c, handle)
	}
	return st, c, err
}

// importClose interrupts an import. What is staged stays.
func (h *history) importClose(op *Op) error {
	c := h.now.collections[op.In]
	if c == nil {
		return errPassed
	}
	st := h.imports[source{c.born, op.Name}]
	if st == nil || st.im == nil {
		return errPassed
	}
	if err := st.im.Close(); err != nil {
		return err
	}
	err := st.ended()
	st.im, st.least = nil, len(st.rows)
	return errors.Join(err, h.checkStaged())
}

// ended checks that an ended import takes nothing more.
func (st *staging) ended() error {
	if err := st.im.Skip("late"); !errors.Is(err, db.ErrInvalid) {
		return fmt.Errorf("more is put to an import that has ended: %v", err)
	}
	if err := st.im.Commit(context.Background()); !errors.Is(err, db.ErrInvalid) {
		return fmt.Errorf("an import that has ended is committed: %v", err)
	}
	return errors.Join(st.im.Close(), st.im.Discard())
}

// importDiscard forgets an import.
func (h *history) importDiscard(op *Op) error {
	st, _, err := h.resumed(op)
	if err != nil {
		return err
	}
	if err := st.im.Discard(); err != nil {
		return err
	}
	delete(h.imports, source{st.born, st.source})
	return errors.Join(st.ended(), h.checkStaged())
}

// importRemove removes interrupted imports: with Pinned all of them, otherwise those of
// dropped collections.
func (h *history) importRemove(op *Op) error {
	if h.options.ReadOnly {
		_, err := h.d.RemoveStagedImports(h.ctx, ages(op.Pinned))
		return expect(err, db.ErrReadOnly)
	}
	want := map[string]bool{}
	h.forget(func(st *staging) bool {
		goes := h.gone(st) || op.Pinned && st.im == nil && !st.committed
		if goes {
			want[st.source] = true // of any collection: a dropped one has no name
		}
		return goes
	})
	removed, err := h.d.RemoveStagedImports(h.ctx, ages(op.Pinned))
	if err != nil {
		return err
	}
	for _, s := range removed {
		if !want[s.Source] && !s.Committed { // the model remembers imports that are not committed
			return fmt.Errorf("the staged import %+v is removed", s)
		}
	}
	if err := h.checkStaged(); err != nil || len(want) > 0 {
		return err
	}
	return errPassed
}

// checkStaged compares the staged imports with the right ones.
func (h *history) checkStaged() error {
	all, err := h.d.StagedImports(h.ctx)
	if err != nil {
		return err
	}
	var got, want []string
	for _, s := range all {
		got = append(got, fmt.Sprintf("%q of %q, open %v, committed %v", s.Source, s.Collection, s.Open, s.Committed))
	}
	for _, st := range h.imports {
		in := st.in
		if h.gone(st) {
			in = ""
		}
		want = append(want, fmt.Sprintf("%q of %q, open %v, committed %v", st.source, in, st.im != nil, st.committed && st.im == nil))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("staged imports %s, want %s", got, want)
	}
	return nil
}
