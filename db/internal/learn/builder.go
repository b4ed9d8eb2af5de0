package learn

import (
	"context"
	"log/slog"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/bulk"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// A space is founded without codes. Until all items have theirs it is being built, and cannot be searched or
// updated. Building may take hours and may be interrupted, so it goes block by block, from the lowest row up,
// with a commit each. Two sources give a row its code in the new space: the builder, for the rows that were
// there, and each write, for the rows that it touches. The write is always the newer one, so the committer
// lets it win.

// A builder gives all items of a collection their codes in a space, block by block of rows.
// Writes keep the space current meanwhile, so a builder leaves out the rows that have changed
// since it took the view of the block. The commit of a block stores how far the builder has
// got (SpaceCounters.Built). If it ends early, another builder goes on from there.
//
// A builder is for one call of run, and belongs to the goroutine of that call.
type builder struct {
	c        Collection
	space    uint32         // the number of the space to build
	workers  int            // goroutines that read, encode, and store: work.All() or work.Background()
	rate     int            // the most items a second; 0: no limit
	progress event.Progress // called in the goroutine of run, in the stage "encode"; nil: none

	until      uint64        // rows from here on have been put since it began, with codes in the space; 0: not begun
	building   *building     // the figures and the end that waiting builders see
	committing time.Duration // the time that it has spent in commits so far
}

// A builtSpace describes a space that a builder has completed.
type builtSpace struct {
	Space    uint32 // its number
	Parent   uint32 // the space that it was reindexed from; 0: a training has made it
	Revision uint32
	Items    int  // the items that have a code in it
	Active   bool // it is the active space of the collection
}

// event returns the fields that events have of a completed space.
func (b builtSpace) event() event.Event {
	return event.Event{Space: b.Space, Revision: b.Revision, Items: int64(b.Items), Attrs: []slog.Attr{slog.Bool("active", b.Active)}}
}

// Unbuilt returns the fields that events have of a failed training or reindexing. space is the
// space that was to be built, 0 if there was none yet. The attribute "resumes" says that it
// stays as far as it has got, for Reindex or the next Open.
func (c Collection) Unbuilt(space uint32) event.Event {
	e := event.Event{Space: space}
	if cv, ok := c.DB.Current.Load().Collections.Get(c.ID); ok {
		if sp := cv.SpaceNumber(space); sp != nil && sp.Numbers.Building {
			e.Attrs = []slog.Attr{slog.Bool("resumes", true)}
		}
	}
	return e
}

// build builds the space, or the rest of it. The caller has claimed it (buildings.claim).
func (b *builder) build(ctx context.Context) (builtSpace, error) {
	defer func() {
		// The committer stops recording rows, even if ctx has ended. If the space is complete,
		// Changed may belong to an update by now. Another builder, whose Changed must stay, cannot
		// begin before buildings.end, which runs later.
		_ = b.c.Look(context.WithoutCancel(ctx), func(s *state.CollectionState) error {
			if sp, err := b.spaceIn(s); err == nil && sp.Numbers.Building {
				sp.Changed = nil
				sp.Left = sp.Left || sp.Parent == 0 // the next training may replace what a training has left
			}
			return nil
		})
	}()
	for {
		// Since the last block a waiting builder may have replaced the rate.
		began, rate := time.Now(), int(b.building.rate.Load())
		rows, built, complete, err := b.step(ctx, blockSize(rate))
		if complete || err != nil {
			return built, err
		}
		if err := pace(ctx, began, rows, rate); err != nil {
			return built, err
		}
	}
}

// step encodes and stores the next block of at most size rows, and returns how many rows it
// had. After the last block a step without rows completes the space; built describes it then.
// Each step takes a view of its own: one view for a slow build would keep replaced and deleted
// records in the store.
func (b *builder) step(ctx context.Context, size int) (rows int, built builtSpace, complete bool, err error) {
	// The order: take a view, from which on changes are recorded; encode from the view; make the index
	// when nothing is left to encode; commit what has not changed since the view. Only
	// the commit stores anything, so a crash costs one block at most (TestCrashesWhileASpaceIsBuilt
	// of db).
	v, built, err := b.begin(ctx)
	if v == nil || err != nil {
		return 0, built, true, err
	}
	defer v.Release()
	cv, err := v.Collection(b.c.ID, b.c.Name)
	if err != nil {
		return 0, built, false, err
	}
	// Rows from cv.NextRow on come later. Their writes give them codes in this space too (Tx.put),
	// so the builder ends even if items come faster than it encodes.
	if b.until == 0 {
		b.until = cv.NextRow
	}
	sp := cv.SpaceNumber(b.space)
	from := uint32(sp.Numbers.Built)
	before := 0 // the items below from: earlier blocks
	if from > 0 {
		before = int(cv.Live.Rank(from - 1))
	}
	total := cv.Items
	if b.until < cv.NextRow {
		total = int(cv.Live.Rank(uint32(b.until - 1)))
	}
	block, err := encodeRows(ctx, v, cv, sp.Space, b.workers, from, b.until, size, func(n int) { b.at(before+n, max(before+n, total)) })
	if err != nil {
		return 0, built, false, err
	}
	rows = len(block.rows)
	if rows > 0 {
		from = block.rows[rows-1] + 1
	}
	last := rows == 0 // all rows have codes, as the index needs
	// Where there is an active space, the new one gets its index before it is complete: it
	// may become active then, and searches must not be slower for a while.
	if last && cv.Space != nil && cv.Items >= indexFirstItems {
		if err := b.c.DB.IndexSpace(ctx, b.c.ID, b.space, b.workers); err != nil {
			return 0, built, false, err
		}
	}
	since := time.Now()
	built, err = b.store(ctx, block, from, last)
	b.committing += time.Since(since)
	return rows, built, last, err
}

// indexFirstItems is the number of items from which on step indexes a space before it is
// complete.
const indexFirstItems = 4096

// at tells progress and waiting builders that done of total items have been looked at.
func (b *builder) at(done, total int) {
	b.building.done.Store(int64(done))
	b.building.total.Store(int64(total))
	if b.progress != nil {
		b.progress("encode", int64(done), int64(total))
	}
}

// spaceIn returns the state of the space that is being built, ErrNotFound if it has been
// dropped. It runs in the committer.
func (b *builder) spaceIn(s *state.CollectionState) (*state.SpaceState, error) {
	sp := s.SpaceByID(b.space)
	if sp == nil {
		return nil, fault.NotFound("space %d of collection %q, which was being built", b.space, s.Name)
	}
	return sp, nil
}

// begin returns the view of the next block, which the caller releases. From that view on the
// committer records changed rows in SpaceState.Changed. If the space is complete already, the
// view is nil and built describes the space.
func (b *builder) begin(ctx context.Context) (v *state.View, built builtSpace, err error) {
	err = b.c.Look(ctx, func(s *state.CollectionState) error {
		sp, err := b.spaceIn(s)
		if err != nil {
			return err
		}
		if !sp.Numbers.Building {
			built = builtOf(s, sp)
			return nil
		}
		// Recording and the view begin in one request, so no write falls between them.
		sp.Changed = roaring.New()
		v = b.c.DB.Current.Load() // it stays while an operation runs, as this one does
		v.Acquire()
		return nil
	})
	return v, built, err
}

// builtOf describes a space of a collection. It runs in the committer.
func builtOf(s *state.CollectionState, sp *state.SpaceState) builtSpace {
	return builtSpace{sp.ID, sp.Parent, sp.Revision, sp.Coded(), s.Active() == sp}
}

// store stores the codes of a block in one commit: as tables from TableRows rows on, else in a
// batch. next is the first row behind the block. With last, the block is empty and the commit
// completes the space.
func (b *builder) store(ctx context.Context, block *coded, next uint32, last bool) (built builtSpace, err error) {
	do := func(f func(tx *state.Tx, s *state.CollectionState) error) error { return b.c.Do(ctx, 0, f) }
	tables := len(block.rows) >= TableRows
	if tables {
		do = func(f func(tx *state.Tx, s *state.CollectionState) error) error { return b.c.Load(ctx, f) }
	}
	err = do(func(tx *state.Tx, s *state.CollectionState) error {
		sp, err := b.spaceIn(s)
		if err != nil {
			return err
		}
		if err := sp.RoomFor(uint64(len(block.rows))); err != nil {
			return fault.Annotate(err, "collection %q", s.Name)
		}
		// A row that has changed since the view, or has a code already, got it from a write. It
		// keeps that code, or has none if its item is gone. HasCode finds the rows that were
		// written before this view, as Changed is new for each block. TestWritesWhileReindexing
		// of db provokes both.
		fresh := block.without(func(row uint32) bool { return sp.Changed.Contains(row) || sp.HasCode(row) })
		// Built passes the rows that were left out, too: nothing remains to be done for them.
		n := sp.Numbers
		n.Built = uint64(next)
		switch {
		case tables:
			err = bulk.StoreCodes(ctx, tx.Committer, b.workers, s, sp, n, fresh.rows, fresh.encs)
		case last:
			completeSpace(tx, s, sp)
		default:
			err = txStoreCodes(tx, s, sp, n, fresh)
		}
		built = builtOf(s, sp)
		return err
	})
	return built, err
}

// txStoreCodes stores the codes of a block of few rows in a transaction. n has the counters
// of the space as they are to be, but for those of codes, which SetCodes counts.
func txStoreCodes(tx *state.Tx, s *state.CollectionState, sp *state.SpaceState, n codec.SpaceCounters, block *coded) error {
	for i, row := range block.rows {
		if err := tx.SetCodes(s, sp, row, block.encs[i]); err != nil {
			return err
		}
	}
	sp.Numbers = n
	tx.Committer.Touch(s)
	return nil
}

// completeSpace marks a space as complete, and activates it if that was asked for.
func completeSpace(tx *state.Tx, s *state.CollectionState, sp *state.SpaceState) {
	if sp.Numbers.Activate {
		tx.Activate(s, sp)
	}
	// All of this is one commit: after a crash the space is still being built and Activate is not
	// forgotten, or it is complete and active.
	sp.Numbers.Building, sp.Numbers.Activate, sp.Numbers.Built = false, false, 0
	sp.Changed = nil
	tx.Committer.Touch(s)
}

// without returns a copy that leaves out the stale rows. The codes are shared.
func (c *coded) without(stale func(row uint32) bool) *coded {
	out := &coded{space: c.space, rows: make([]uint32, 0, len(c.rows)), encs: make([]spaces.Encoding, 0, len(c.encs))}
	for i, row := range c.rows {
		if !stale(row) {
			out.rows, out.encs = append(out.rows, row), append(out.encs, c.encs[i])
		}
	}
	return out
}

// Rebuild gives all items their codes in a space that is being built and was complete before,
// as repair leaves it. It uses all processors, and returns how many items have a code.
func (c Collection) Rebuild(ctx context.Context, space uint32, progress event.Progress) (int, error) {
	b := &builder{c: c, space: space, workers: work.All(), progress: progress}
	built, err := b.run(ctx)
	return built.Items, err
}
