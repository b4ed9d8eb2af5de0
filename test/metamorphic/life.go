package metamorphic

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/db"
)

// A moment is a snapshot, and the world that it has to show.
type moment struct {
	*db.Snapshot
	w *world
}

func (h *history) create(op *Op) error {
	var want error
	if h.now.collections[op.In] != nil {
		want = db.ErrExists
	}
	_, err := h.d.CreateCollection(h.ctx, op.In, db.Schema{Modalities: op.Schema.Modalities, Bits: op.Schema.Bits, Fields: op.Schema.allFields()})
	if err := expect(err, want); err != nil {
		return err
	}
	next := h.now.fork()
	c := newCollection(op.In, op.Schema)
	h.born++
	c.born = h.born
	next.collections[op.In] = c
	return h.commit(next, true)
}

func (h *history) dropCollection(op *Op) error {
	_, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	if err := h.d.DropCollection(h.ctx, op.In); err != nil {
		return err
	}
	if _, err := handle.Count(context.Background(), ""); !errors.Is(err, db.ErrNotFound) {
		return fmt.Errorf("a handle on what was dropped: %v", err)
	}
	next := h.now.fork()
	delete(next.collections, op.In)
	return h.commit(next, true)
}

func (h *history) snapshot(op *Op) error {
	if old := h.snapshots[op.Name]; old != nil {
		return errPassed
	}
	s, err := h.d.Snapshot()
	if err != nil {
		return err
	}
	h.snapshots[op.Name] = &moment{s, h.now.fork()}
	if !h.learns() {
		return nil
	}
	// The revision of the snapshot has to be read before there is another one. From
	// then on, the new revision belongs to the present state only.
	for name := range h.now.collections {
		h.snapshots[op.Name].w.edit(name)
	}
	return h.checkWorld(h.snapshots[op.Name].w, s.Collection)
}

// release compares a snapshot and closes it.
func (h *history) release(op *Op) error {
	m := h.snapshots[op.Name]
	if m == nil {
		return errPassed
	}
	if err := h.checkWorld(m.w, m.Snapshot.Collection); err != nil {
		return err
	}
	delete(h.snapshots, op.Name)
	if err := m.Close(); err != nil {
		return err
	}
	if _, err := m.Snapshot.Collection("a"); !errors.Is(err, db.ErrClosed) {
		return fmt.Errorf("a closed snapshot: %v", err)
	}
	return nil
}

func (h *history) compact(*Op) error { return h.d.Compact(h.ctx) }

func (h *history) index(*Op) error { return h.d.WaitForIndex(h.ctx) }

// cancelled calls every function that takes a context with one that has ended. Nothing
// may happen.
func (h *history) cancelled(op *Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	if !h.writable() {
		return errPassed
	}
	ctx, cancel := context.WithCancel(h.ctx)
	cancel()
	second := func(_ any, err error) error { return err }
	errs := map[string]error{
		"compact": h.d.Compact(ctx), "deletewhere": second(handle.DeleteWhere(ctx, "NOT label = ''")), "delete": second(handle.Delete(ctx, op.Key)),
		"verify": second(h.d.Verify(ctx, db.VerifyOptions{}, func(db.Finding) error { return nil })),
		"get":    second(handle.Get(ctx, op.Key)), "spaces": second(handle.Spaces(ctx)),
	}
	if c.active == 0 {
		delete(errs, "spaces") // such a collection has no spaces
	}
	if !c.refused(&Op{Do: "put", Key: op.Key, Item: op.Item}) {
		_, errs["put"] = handle.Put(ctx, c.given(op.Key, op.Item))
	}
	if sp := c.space(0); sp != nil {
		q := db.Query{Code: codeOf(sp.bits, 1)}
		errs["search"], errs["radius"] = second(handle.Search(ctx, q)), second(handle.SearchRadius(ctx, q, 3))
	}
	if !c.codesOnly() {
		errs["indexvectors"] = second(handle.IndexVectors(ctx, db.IndexOptions{}))
	}
	if c.active != 0 && !c.codesOnly() {
		errs["train"] = second(handle.Train(ctx, (&Training{Bits: 16, Anchors: 4}).options(&c.schema)))
		errs["update"] = second(handle.Update(ctx, db.UpdateOptions{GrowLabels: true}))
		errs["reindex"] = second(handle.Reindex(ctx, db.ReindexOptions{}))
	}
	for what, err := range errs {
		if !errors.Is(err, context.Canceled) && !(h.learns() && errors.Is(err, db.ErrBusy)) {
			return fmt.Errorf("%s: %v", what, err)
		}
	}
	return h.check(nil)
}

func (h *history) verify(*Op) error {
	return nothingFound(func(found func(db.Finding) error) error {
		_, err := h.d.Verify(h.ctx, db.VerifyOptions{Deep: true}, found)
		return err
	})
}

// nothingFound calls look, and makes an error of what look finds.
func nothingFound(look func(found func(db.Finding) error) error) error {
	var findings []string
	err := look(func(f db.Finding) error {
		findings = append(findings, f.String())
		return nil
	})
	if err == nil && len(findings) > 0 {
		err = fmt.Errorf("%d findings: %s", len(findings), findings[:min(3, len(findings))])
	}
	return err
}

// reopen closes the database and opens it again, perhaps with other options. The same
// queries have to have the same answers before and after.
func (h *history) reopen(op *Op) error {
	before, err := h.probe()
	if err != nil {
		return err
	}
	if err := h.close(); err != nil {
		return err
	}
	h.setOptions(op)
	if err := h.open(nil); err != nil {
		return err
	}
	h.past = nil // closing makes everything durable
	if err := h.check(nil); err != nil {
		return err
	}
	if h.now.sequence, err = h.sequence(); err != nil {
		return err
	}
	after, err := h.probe()
	if err != nil {
		return err
	}
	return sameAnswers(before, after)
}

func (h *history) setOptions(op *Op) {
	if op.Options != nil {
		disk := h.options.Disk
		h.options = *op.Options
		h.options.Disk = disk
	}
}

// crash continues with what a crash would leave at this moment.
func (h *history) crash(op *Op) error {
	if h.mem == nil {
		return h.reopen(op)
	}
	left := h.mem.crash(op)
	if err := h.close(); err != nil {
		return err
	}
	h.mem = left
	exact := !h.options.NoSync || h.knows()
	h.setOptions(op)
	if err := h.open(nil); err != nil {
		return err
	}
	if err := h.recovered(exact); err != nil {
		return err
	}
	return h.verify(nil)
}

// recovered finds the state that the database has come back to: the last one; or,
// without syncing, any state since the last sync. With exact, all commits are known to
// the model.
func (h *history) recovered(exact bool) error {
	sequence, err := h.sequence()
	if err != nil {
		return err
	}
	for _, w := range slices.Backward(h.past) {
		if h.now.sequence > sequence {
			h.now = w
		}
	}
	if len(h.past) > 0 && (h.now.sequence > sequence || exact && h.now.sequence != sequence) {
		return fmt.Errorf("commit %d is the last, and no state of the %d that were not synced has that number; the one before has %d", sequence, len(h.past), h.now.sequence)
	}
	if err := h.checkWorld(h.now, h.d.Collection); err != nil {
		return fmt.Errorf("of commits that were not synced, %d may be lost; commit %d is the last: %w", len(h.past), sequence, err)
	}
	h.now.sequence, h.past = sequence, nil
	return nil
}
