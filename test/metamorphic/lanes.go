package metamorphic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/test/metamorphic/program"
)

// Lanes are goroutines that work at the same time. The writing lanes have keys of their
// own, so the outcome for these keys does not depend on the others; each lane compares
// it on the way. The order of rows, labels and codes is read at the end.

// A laneStep is a write of a lane: its predicted error, and the world as the lane sees
// its own keys afterwards.
type laneStep struct {
	op   *program.Op
	want error
	w    *world
	t    touched
}

// together runs the lanes, each in a goroutine.
func (h *history) together(op *program.Op) error {
	if !h.writable() {
		return errPassed
	}
	next, t := h.now.fork(), touched{}
	lanes := make([][]laneStep, len(op.Lanes))
	for i, ops := range op.Lanes {
		w := h.now
		for j := range ops {
			step := laneStep{op: &ops[j], w: w, t: touched{}}
			if step.writes() {
				step.w = w.fork()
				if step.want = step.w.apply(step.op, step.t); step.want != nil {
					step.w = w
				} else if err := next.apply(step.op, t); err != nil {
					return fmt.Errorf("lanes have keys in common: %w", err)
				}
			}
			w = step.w
			lanes[i] = append(lanes[i], step)
		}
	}
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	progress, crash := make([]progress, len(lanes)), &interruption{after: int64(op.N)}
	interrupted := op.Crash && h.mem != nil && !h.options.NoSync
	errs := make([]error, len(lanes))
	after := make([][]func() error, len(lanes))
	var wg sync.WaitGroup
	for i, steps := range lanes {
		wg.Go(func() {
			for _, step := range steps {
				if ctx.Err() != nil {
					return
				}
				if step.writes() {
					progress[i].begun.Add(1)
				}
				then, err := h.lane(step, lanes, progress)
				if err == nil && step.writes() {
					if progress[i].back.Add(1); interrupted {
						crash.wrote(h, op, progress)
					}
				}
				if err != nil {
					errs[i] = fmt.Errorf("lane %d, %s: %w", i, step.op.Do, err)
					cancel()
					return
				}
				if then != nil {
					after[i] = append(after[i], then)
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := crash.check(h, lanes); err != nil {
		return err
	}
	for _, steps := range lanes {
		for _, step := range steps {
			n := h.counts[step.op.Do]
			if n[0]++; step.want == nil {
				n[1]++
			}
			h.counts[step.op.Do] = n
		}
	}
	return h.joined(op, next, t, slices.Concat(after...))
}

// joined takes over what the lanes have done.
func (h *history) joined(op *program.Op, next *world, t touched, after []func() error) error {
	for _, lane := range op.Lanes {
		for _, op := range lane {
			if c := next.edit(op.In); c != nil && op.Do == "update" {
				// it is not known which revision encoded what was written meanwhile
				for _, sp := range c.spaces {
					sp.moving = true
				}
			}
		}
	}
	for name := range t {
		c := next.edit(name)
		c.loose, c.fresh = true, true
	}
	for name, keys := range t {
		if err := h.settle(next, name, keys); err != nil {
			return err
		}
	}
	if err := h.commit(next, false); err != nil {
		return err
	}
	for _, c := range h.now.collections {
		for _, sp := range c.spaces {
			sp.moving = false
		}
	}
	for _, then := range after {
		if err := then(); err != nil && !errors.Is(err, errPassed) {
			return err
		}
	}
	if h.options.NoSync { // the states in between are not known, so a crash cannot go back to them
		if _, err := h.d.CreateCollection(h.ctx, "sync", db.Schema{Bits: 8}); err != nil {
			return err
		}
		if err := h.d.DropCollection(h.ctx, "sync"); err != nil {
			return err
		}
		h.past = nil
		var err error
		if h.now.sequence, err = h.sequence(); err != nil {
			return err
		}
	}
	return h.check(nil)
}

func (s *laneStep) writes() bool {
	return slices.Contains([]string{"put", "merge", "putif", "batch", "delete"}, s.op.Do)
}

// lane runs one step. The function that it returns takes over the outcome once all
// lanes have ended.
func (h *history) lane(s laneStep, lanes [][]laneStep, progress []progress) (then func() error, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	switch s.op.Do {
	case "look":
		return nil, h.look(s.op)
	case "train", "update", "reindex":
		return h.laneLearns(s.op)
	case "alter":
		return h.laneAlter(s.op)
	case "indexvectors":
		return h.laneIndexes(s.op)
	case "backup":
		return h.laneBackup(lanes, progress)
	case "checkpoint":
		return h.laneCheckpoint(s.op, lanes, progress)
	case "compact":
		return nil, h.d.Compact(h.ctx)
	case "verify":
		return nil, h.verify(nil)
	}
	if !s.writes() {
		return nil, fmt.Errorf("a lane has no operation %q", s.op.Do)
	}
	if s.op.In != "" && h.now.collections[s.op.In] == nil {
		_, err := h.d.Collection(s.op.In)
		return nil, passed(expect(err, db.ErrNotFound))
	}
	_, err = h.send(s.op)
	if err := expect(err, s.want); err != nil {
		return nil, passed(err)
	}
	for name, keys := range s.t {
		c := s.w.collections[name]
		handle, err := h.d.Collection(name)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			got, err := handle.Get(h.ctx, key)
			switch it := c.items[key]; {
			case it == nil && errors.Is(err, db.ErrNotFound):
			case err != nil:
				return nil, fmt.Errorf("item %q: %w", key, err)
			case it == nil:
				return nil, fmt.Errorf("item %q was deleted", key)
			default:
				if err := c.sameContent(it, got); err != nil {
					return nil, fmt.Errorf("item %q: %w", key, err)
				}
			}
		}
	}
	return nil, nil
}

// passed returns nil if an operation was passed over, and its error otherwise.
func passed(err error) error {
	if errors.Is(err, errPassed) {
		return nil
	}
	return err
}

// laneLearns trains, updates or reindexes while other lanes write.
func (h *history) laneLearns(op *program.Op) (func() error, error) {
	c := h.now.collections[op.In]
	if c == nil || c.codesOnly() {
		return nil, nil
	}
	handle, err := h.d.Collection(op.In)
	if err != nil {
		return nil, err
	}
	number := c.numberOf(op.Space)
	var then func() error
	switch op.Do {
	case "train":
		var t *report.Training
		t, err = handle.Train(h.ctx, trainOptions(op.Train, &c.schema))
		then = func() error { return h.trained(op, t, false) }
	case "reindex":
		var re *report.Reindexing
		re, err = handle.Reindex(h.ctx, db.ReindexOptions{Space: number, Activate: op.Pinned})
		then = func() error { return h.reindexed(op, re) }
	case "update":
		var u *report.Update
		u, err = handle.Update(h.ctx, db.UpdateOptions{Space: number, Teacher: teachers[op.Teacher]})
		then = func() error { return h.updated(op, u) }
	}
	switch {
	case err == nil:
		return then, nil
	case c.space(number) == nil && (errors.Is(err, db.ErrNotFound) || errors.Is(err, db.ErrNoModel)),
		op.Do == "train" && errors.Is(err, db.ErrInvalid),
		op.Do == "update" && c.space(number).labelFree && errors.Is(err, db.ErrInvalid),
		h.learns() && errors.Is(err, db.ErrBusy):
		return nil, nil
	}
	return nil, err
}

// look takes a snapshot, and compares what indexes of vectors find, and the counts of all plans, with
// its items.
func (h *history) look(op *program.Op) error {
	snap, err := h.d.Snapshot()
	if err != nil {
		return err
	}
	return errors.Join(h.lookAt(op, snap), snap.Close())
}

func (h *history) lookAt(op *program.Op, snap *db.Snapshot) error {
	handle, err := snap.Collection(op.In)
	if errors.Is(err, db.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := h.lookByVectors(op, handle); err != nil {
		return err
	}
	stats, err := handle.Stats(h.ctx)
	if err != nil || !stats.Trained {
		return err
	}
	q := db.Query{Code: program.CodeOf(stats.Bits, op.Seed%(1<<16))}
	want := 0
	for it, err := range handle.Items(h.ctx, "") {
		if err != nil {
			return err
		}
		if it.Code != nil && oracle.Distance(string(it.Code), string(q.Code)) <= op.Radius {
			want++
		}
	}
	for _, plan := range planNames {
		if q.Plan = plans[plan]; q.Plan == db.PlanDisk && op.Radius > 3 {
			continue
		}
		runs, err := handle.SearchRadius(h.ctx, q, op.Radius)
		if err != nil {
			return err
		}
		if n := runs.Total(); runs.Close() != nil || n != want {
			return fmt.Errorf("plan %v: %d within %d, the snapshot has %d", q.Plan, n, op.Radius, want)
		}
	}
	return nil
}
