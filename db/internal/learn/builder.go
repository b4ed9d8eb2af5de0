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
	"github.com/fddhdb/fddhdb/db/report"
)

// A builder gives all items of a collection their codes in a new space, block after
// block of rows. Writers keep the space current meanwhile, so it leaves out what they
// have touched since it took its view. How far it has got is stored with each block, and
// where it ends early, another one goes on from there.
type builder struct {
	c        Collection
	space    uint32
	workers  int
	rate     int // items a second, at most; 0: no limit
	progress event.Progress
	again    bool // the space was complete once: its drift is known

	until      uint64        // rows from this on have come since it began, with codes in the space
	building   *building     // what others see of it
	committing time.Duration // of all time that it took
}

// A builtSpace is what a builder has come to.
type builtSpace struct {
	Space    uint32
	Parent   uint32
	Revision uint32
	Items    int // that have a code
	Active   bool
}

func (b builtSpace) event() event.Event {
	return event.Event{Space: b.Space, Revision: b.Revision, Items: int64(b.Items), Attrs: []slog.Attr{slog.Bool("active", b.Active)}}
}

// Unbuilt is what the event says of a space, 0 for none, whose building has failed: whether
// it stays as far as it has got, for Reindex or the next Open to go on with.
func (c Collection) Unbuilt(space uint32) event.Event {
	e := event.Event{Space: space}
	if cv, ok := c.DB.Current.Load().Collections.Get(c.ID); ok {
		if sp := cv.SpaceNumber(space); sp != nil && sp.Numbers.Building {
			e.Attrs = []slog.Attr{slog.Bool("resumes", true)}
		}
	}
	return e
}

// build builds the space.
func (b *builder) build(ctx context.Context) (builtSpace, error) {
	defer func() {
		// Whatever became of the context. Rows of a space that is complete are recorded
		// for others.
		_ = b.c.Look(context.WithoutCancel(ctx), func(s *state.CollectionState) error {
			if sp, err := b.spaceIn(s); err == nil && sp.Numbers.Building {
				sp.Changed = nil
				sp.Left = sp.Left || sp.Parent == 0 // a reindexing is there for somebody to go on with
			}
			return nil
		})
	}()
	for {
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

// step gives the next rows their codes, up to so many. Each takes a view of its own, so
// that the store need not keep what is gone for as long as a slow build takes.
func (b *builder) step(ctx context.Context, size int) (rows int, built builtSpace, complete bool, err error) {
	v, built, err := b.begin(ctx)
	if v == nil || err != nil {
		return 0, built, true, err
	}
	defer v.Release()
	cv, err := v.Collection(b.c.ID, b.c.Name)
	if err != nil {
		return 0, built, false, err
	}
	if b.until == 0 {
		b.until = cv.NextRow
	}
	sp := cv.SpaceNumber(b.space)
	from := uint32(sp.Numbers.Built)
	before := 0
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
	last := rows == 0 // what is done at the end needs all codes
	// What takes the place of another is indexed before: searches are not to be slower
	// for a while.
	if last && cv.Space != nil && cv.Items >= indexFirstItems {
		if err := b.c.DB.IndexSpace(ctx, b.c.ID, b.space, b.workers); err != nil {
			return 0, built, false, err
		}
	}
	var drift *report.Drift
	if last && !b.again {
		if drift, err = b.drift(ctx); err != nil {
			return 0, built, false, err
		}
	}
	since := time.Now()
	built, err = b.store(ctx, block, from, last, drift)
	b.committing += time.Since(since)
	return rows, built, last, err
}

// indexFirstItems is with how many items a new space is indexed before it is complete.
const indexFirstItems = 4096

// at says how far it has got.
func (b *builder) at(done, total int) {
	b.building.done.Store(int64(done))
	b.building.total.Store(int64(total))
	if b.progress != nil {
		b.progress("encode", int64(done), int64(total))
	}
}

// spaceIn returns the state of the space that is being built.
func (b *builder) spaceIn(s *state.CollectionState) (*state.SpaceState, error) {
	sp := s.SpaceByID(b.space)
	if sp == nil {
		return nil, fault.NotFound("space %d of collection %q, which was being built", b.space, s.Name)
	}
	return sp, nil
}

// begin returns the view to encode; from then on the committer records the rows that
// change. The view is nil where somebody else has completed the space.
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
		sp.Changed = roaring.New()
		v = b.c.DB.Current.Load() // only the committer replaces it
		v.Acquire()
		return nil
	})
	return v, built, err
}

// builtOf returns what building a space has come to.
func builtOf(s *state.CollectionState, sp *state.SpaceState) builtSpace {
	return builtSpace{sp.ID, sp.Parent, sp.Revision, int(sp.Numbers.Coded), s.Active() == sp}
}

// store stores the codes of a block of rows; next is the first row behind them. With
// last, when there are none, the space is complete; drift is that of the items that have
// taught in it, nil where it is not to be stored.
func (b *builder) store(ctx context.Context, block *coded, next uint32, last bool, drift *report.Drift) (built builtSpace, err error) {
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
		fresh := block.without(func(row uint32) bool { return sp.Changed.Contains(row) || sp.HasCode(row) })
		n := sp.Numbers
		n.Built = uint64(next)
		switch {
		case tables:
			err = bulk.StoreCodes(ctx, tx.Committer, b.workers, s, sp, n, fresh.rows, fresh.encs)
		case last:
			err = completeSpace(tx, s, sp, drift)
		default:
			err = txStoreCodes(tx, s, sp, n, fresh)
		}
		built = builtOf(s, sp)
		return err
	})
	return built, err
}

// txStoreCodes stores the codes of some rows, and how far the builder has got.
func txStoreCodes(tx *state.Tx, s *state.CollectionState, sp *state.SpaceState, n codec.SpaceCounters, block *coded) error {
	for i, row := range block.rows {
		if err := tx.SetCodes(s, sp, row, block.encs[i]); err != nil {
			return err
		}
	}
	n.Coded = sp.Numbers.Coded
	sp.Numbers = n
	tx.Committer.Touch(s)
	return nil
}

// completeSpace ends the building of a space, all of whose rows have their codes.
func completeSpace(tx *state.Tx, s *state.CollectionState, sp *state.SpaceState, drift *report.Drift) error {
	if drift != nil {
		if err := keepDrift(tx, sp, drift); err != nil {
			return err
		}
	}
	if sp.Numbers.Activate {
		tx.Activate(s, sp)
	}
	sp.Numbers.Building, sp.Numbers.Activate, sp.Numbers.Built = false, false, 0
	sp.Changed = nil
	tx.Committer.Touch(s)
	return nil
}

// without returns the codes of the rows that are not stale.
func (c *coded) without(stale func(row uint32) bool) *coded {
	out := &coded{space: c.space, rows: make([]uint32, 0, len(c.rows)), encs: make([]spaces.Encoding, 0, len(c.encs))}
	for i, row := range c.rows {
		if !stale(row) {
			out.rows, out.encs = append(out.rows, row), append(out.encs, c.encs[i])
		}
	}
	return out
}

// Rebuild gives all items their codes in a space that is being built and was complete once,
// and returns how many have one then.
func (c Collection) Rebuild(ctx context.Context, space uint32, progress event.Progress) (int, error) {
	b := &builder{c: c, space: space, workers: work.All(), progress: progress, again: true}
	built, err := b.run(ctx)
	return built.Items, err
}
