package metamorphic

import (
	"errors"
	"fmt"

	"github.com/fddhdb/fddhdb/db"
)

// A duplicate is another database, closed, or a backup. It is a copy of this database,
// or of a part of it, at some moment. A database may have been written to since.
type duplicate struct {
	folder  string
	w       *world
	answers map[string][]db.Hit // answers of probe at that moment
}

// duplicate returns what a copy made by an operation must hold.
func (h *history) duplicate(op *Op) (*duplicate, error) {
	answers, err := h.probe()
	if err != nil {
		return nil, err
	}
	d := &duplicate{w: h.now.part(op.In, op.IndexOnly), answers: answers}
	for name := range d.w.collections {
		if h.learns() { // an update in the background may come before or after the copy
			for _, sp := range d.w.edit(name).spaces {
				sp.free = true
			}
		}
	}
	return d, nil
}

// part returns the content of a copy of the collection only, or of all collections if
// only is "".
func (w *world) part(only string, indexOnly bool) *world {
	out := w.fork()
	for name, c := range w.collections {
		if only != "" && name != only {
			delete(out.collections, name)
		} else if indexOnly && !c.codesOnly() {
			c := out.edit(name)
			c.indexOnly, c.indexes = true, nil
		}
	}
	return out
}

// checkpoint makes a copy, compares it, and keeps it.
func (h *history) checkpoint(op *Op) error {
	if h.copies[op.Name] != nil {
		return errPassed
	}
	made, err := h.duplicate(op)
	if err != nil {
		return err
	}
	made.folder = h.newFolder()
	dir, _ := h.dbOptions(made.folder)
	err = h.d.Checkpoint(h.ctx, dir, db.CheckpointOptions{Collection: op.In, IndexOnly: op.IndexOnly})
	if op.In != "" && h.now.collections[op.In] == nil {
		return expect(err, db.ErrNotFound)
	}
	if err != nil {
		return err
	}
	if err := h.d.Checkpoint(h.ctx, dir, db.CheckpointOptions{Collection: op.In, IndexOnly: op.IndexOnly}); !errors.Is(err, db.ErrExists) {
		return fmt.Errorf("a second checkpoint to a folder: %v", err)
	}
	h.copies[op.Name] = made
	return h.checkCopy(made, op.Seed)
}

// switchTo continues with a copy, and makes the present database a copy.
func (h *history) switchTo(op *Op) error {
	to := h.copies[op.Name]
	if to == nil {
		return errPassed
	}
	delete(h.copies, op.Name)
	return h.adopt(to, op.Name)
}

// discard deletes a copy.
func (h *history) discard(op *Op) error {
	d := h.copies[op.Name]
	if d == nil {
		return errPassed
	}
	delete(h.copies, op.Name)
	return h.remove(d.folder)
}

// adopt continues with another database. The present one becomes a copy with the name
// keep; if keep is "", it is deleted.
func (h *history) adopt(to *duplicate, keep string) error {
	if err := h.close(); err != nil {
		return err
	}
	if keep == "" || h.copies[keep] != nil {
		if err := h.remove(h.name); err != nil {
			return err
		}
	} else {
		h.copies[keep] = &duplicate{folder: h.name, w: h.now}
	}
	h.name, h.now, h.past = to.folder, to.w.fork(), nil
	for name := range h.now.collections {
		for _, sp := range h.now.edit(name).spaces {
			sp.free = true // it may have changed before this became a copy
		}
	}
	h.cursors = map[string]*place{}
	if err := h.open(nil); err != nil {
		return err
	}
	if err := h.check(nil); err != nil {
		return err
	}
	var err error
	h.now.sequence, err = h.sequence()
	return errors.Join(err, h.sameAsThen(to))
}

// sameAsThen compares answers with those of the database at the moment of the copy.
func (h *history) sameAsThen(d *duplicate) error {
	now, err := h.probe()
	if err != nil {
		return err
	}
	return sameAnswers(d.answers, now)
}

// checkCopy verifies a copy, opens it (one time in two read-only), and compares it with
// its right content.
func (h *history) checkCopy(made *duplicate, seed uint64) error {
	dir, o := h.dbOptions(made.folder)
	o.UpdateItems, o.MustExist, o.ReadOnly = 0, true, seed&2 != 0
	err := nothingFound(func(found func(db.Finding) error) error {
		_, err := db.VerifyFolder(h.ctx, dir, o, db.VerifyOptions{Deep: true}, found)
		return err
	})
	if err != nil {
		return err
	}
	d, err := db.Open(dir, o)
	if err != nil {
		return err
	}
	other := &history{ctx: h.ctx, d: d, now: made.w}
	other.options.ReadOnly = o.ReadOnly
	err = other.check(nil)
	if err == nil {
		err = other.sameAsThen(made)
	}
	if err == nil {
		err = other.checkRefusals()
	}
	return errors.Join(err, d.Close())
}

// laneCheckpoint makes a checkpoint while other lanes write. The function that it
// returns checks the checkpoint.
func (h *history) laneCheckpoint(op *Op, lanes [][]laneStep, progress []progress) (func() error, error) {
	before := h.now.part(op.In, op.IndexOnly)
	if op.In != "" && before.collections[op.In] == nil {
		return nil, nil
	}
	name := fmt.Sprint("lane-", op.Name)
	dir, o := h.dbOptions(name)
	seen, err := cutOf(progress, func() error {
		return h.d.Checkpoint(h.ctx, dir, db.CheckpointOptions{Collection: op.In, IndexOnly: op.IndexOnly})
	})
	if err != nil {
		return nil, err
	}
	return func() error {
		err := seen.check(&history{ctx: h.ctx, now: before}, dir, o, lanes)
		return errors.Join(err, h.remove(name))
	}, nil
}
