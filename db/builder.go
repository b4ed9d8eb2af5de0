package db

import (
	"context"
	"fmt"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
)

// A builder gives all items of a collection their codes in a new space, block after
// block of rows. Writers keep the space current meanwhile, so it leaves out what they
// have touched since it took its view. How far it has got is stored with each block, and
// where it ends early, another one goes on from there.
type builder struct {
	c        *Collection
	space    uint32
	workers  int
	rate     int // items a second, at most; 0: no limit
	progress func(done, total int)

	committing time.Duration // of all time that it took
}

// builtRows is how many rows get their codes in one commit. Writers wait for it: some
// 100 ms.
const builtRows = 32 << 10

// A builtSpace is what a builder has come to.
type builtSpace struct {
	Space    uint32
	Revision uint32
	Items    int // that have a code
	Active   bool
}

// run builds the space. It ends early with the context, and with ErrNotFound when the
// space has been dropped.
func (b *builder) run(ctx context.Context) (built builtSpace, err error) {
	v, err := b.begin(ctx)
	if err != nil {
		return built, err
	}
	defer v.release()
	complete := false
	defer func() {
		if !complete {
			_ = b.inSpace(context.WithoutCancel(ctx), true, func(_ *group, _ *collectionState, sp *spaceState) error {
				sp.changed = nil
				return nil
			})
		}
	}()
	cv, err := v.collection(b.c.id, b.c.name)
	if err != nil {
		return built, err
	}
	sp := cv.spaceNumber(b.space)
	from, start, done := uint32(sp.numbers.Built), time.Now(), 0
	before := int(cv.live.Rank(from)) // rows below from, or from itself, which is one more at most
	for {
		block, err := encodeRows(ctx, v, cv, sp.space, b.workers, from, builtRows, func(n int) {
			if b.progress != nil {
				b.progress(min(before+done+n, cv.items), cv.items)
			}
		})
		if err != nil {
			return built, err
		}
		var drift *Drift
		last := len(block.rows) == 0
		if last {
			if drift, err = b.drift(ctx); err != nil {
				return built, err
			}
		} else {
			from = block.rows[len(block.rows)-1] + 1
		}
		since := time.Now()
		if built, err = b.store(ctx, block, from, last, drift); err != nil {
			return built, err
		}
		b.committing += time.Since(since)
		if last {
			complete = true
			return built, nil
		}
		if done += len(block.rows); b.rate > 0 {
			due := start.Add(time.Duration(float64(done) / float64(b.rate) * float64(time.Second)))
			if err := sleepUntil(ctx, due); err != nil {
				return built, err
			}
		}
	}
}

func sleepUntil(ctx context.Context, t time.Time) error {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// inSpace runs f in the committer, alone, with the space that is being built.
func (b *builder) inSpace(ctx context.Context, quiet bool, f func(g *group, s *collectionState, sp *spaceState) error) error {
	return b.c.exclusive(ctx, quiet, func(g *group, s *collectionState) error {
		sp := s.spaceByID(b.space)
		if sp == nil || !sp.numbers.Building {
			return notFound("space %d of collection %q, which was being built", b.space, s.Name)
		}
		return f(g, s, sp)
	})
}

// begin returns the view to encode; from then on the committer records the rows that
// change.
func (b *builder) begin(ctx context.Context) (*view, error) {
	var v *view
	err := b.inSpace(ctx, true, func(_ *group, s *collectionState, sp *spaceState) error {
		if sp.changed != nil {
			return fmt.Errorf("%w: space %d of collection %q is being built already", ErrBusy, sp.ID, s.Name)
		}
		sp.changed = roaring.New()
		v = b.c.db.current.Load() // only the committer replaces it
		v.acquire()
		return nil
	})
	return v, err
}

// store stores the codes of a block of rows; next is the first row behind them. With
// last, when there are none, the space is complete; drift is that of the items that have
// taught in it.
func (b *builder) store(ctx context.Context, block *coded, next uint32, last bool, drift *Drift) (built builtSpace, err error) {
	tables := len(block.rows) >= bulkItems
	err = b.inSpace(ctx, tables, func(g *group, s *collectionState, sp *spaceState) error {
		if err := sp.roomFor(uint64(len(block.rows))); err != nil {
			return annotate(err, "collection %q", s.Name)
		}
		block := block.without(func(row uint32) bool { return sp.changed.Contains(row) || sp.hasCode(row) })
		n := sp.numbers
		if n.Built = uint64(next); last {
			if err := g.keepDrift(sp, drift); err != nil {
				return err
			}
			n.Building, n.Activate, n.Built = false, false, 0
		}
		activate := last && sp.numbers.Activate
		if tables {
			if err := g.storeTables(ctx, b.c.db, s, sp, n, block, activate); err != nil {
				return err
			}
		} else {
			for i, row := range block.rows {
				if err := g.setCodes(s, sp, row, block.encs[i]); err != nil {
					return err
				}
			}
			n.Coded = sp.numbers.Coded
			sp.numbers, s.dirty = n, true
		}
		if activate {
			s.activate(sp)
		}
		if last {
			sp.changed = nil
		}
		if tables {
			g.c.publish(g.c.newView())
		}
		built = builtSpace{sp.ID, sp.Revision, int(sp.numbers.Coded), s.active() == sp}
		return nil
	})
	return built, err
}

// storeTables stores the codes of many rows and the counters n of their space, in
// which none of them has a code yet, as sorted tables. Where it fails nothing has
// changed.
func (g *group) storeTables(ctx context.Context, d *DB, s *collectionState, sp *spaceState, n codec.SpaceCounters, block *coded, activate bool) (err error) {
	t := newBulkTables(d, g.c)
	codes := newBulkSpace(s, sp, func(i int) uint32 { return block.rows[i] }, codec.Codes{}, block.encs)
	codes.numbers = n
	defer func() {
		if err != nil {
			codes.rollback()
		}
	}()
	first, tasks := codes.tasks(t)
	tasks = append(tasks, t.task(func(stream *tableStream) error {
		if err := codes.waitNumbered(stream); err != nil {
			return err
		}
		if err := t.writeSequence(stream); err != nil {
			return err
		}
		all := s.allCounters()
		for i, other := range s.spaces {
			if other == sp {
				all.Spaces[i] = codes.counters()
			}
		}
		if activate {
			all.PreviousSpace, all.ActiveSpace = all.ActiveSpace, uint64(sp.ID)
		}
		return stream.set(codec.CollectionKey(codec.KindCounters, s.ID), all.Append(nil))
	}))
	if err := t.commit(ctx, append(first, tasks...)); err != nil {
		return err
	}
	sp.stored(codes.counters())
	s.dirty = true
	return nil
}

// activate makes a space the one that searches use.
func (s *collectionState) activate(sp *spaceState) {
	s.counters.PreviousSpace, s.counters.ActiveSpace = s.counters.ActiveSpace, uint64(sp.ID)
	s.dirty = true
}

// without returns the codes of the rows that are not stale.
func (c *coded) without(stale func(row uint32) bool) *coded {
	out := &coded{space: c.space, rows: make([]uint32, 0, len(c.rows)), encs: make([]encoding, 0, len(c.encs))}
	for i, row := range c.rows {
		if !stale(row) {
			out.rows, out.encs = append(out.rows, row), append(out.encs, c.encs[i])
		}
	}
	return out
}

// spaceNumber returns a space of the collection, nil where there is none.
func (cv *collectionView) spaceNumber(id uint32) *spaceView {
	for i := range cv.spaces {
		if cv.spaces[i].space.ID == id {
			return &cv.spaces[i]
		}
	}
	return nil
}
