package db

import (
	"context"
	"iter"
	"log/slog"
	"slices"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/mih"
)

// One goroutine a database indexes the codes that have come since it last
// looked. It works on a view, so that nobody waits for it, and hands what it has
// made to the committer, which shows it with the next view.

// wantIndex asks the indexer to look.
func (d *database) wantIndex() {
	select {
	case d.indexWanted <- struct{}{}:
	default: // it will
	}
}

// runIndexer indexes what is due until the context ends.
func (d *database) runIndexer(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.indexWanted:
		}
		for d.indexOne(ctx) {
		}
	}
}

// indexOne builds the index of one code set, if one is due, and reports whether it
// did.
func (d *database) indexOne(ctx context.Context) bool {
	built, err := d.indexAs(ctx, work.Background(), d.due, d.signals.BeginUntraced)
	return built && err == nil
}

// index runs the first build of tables that choose returns for a code set, on so many
// goroutines, and installs what it has made. Builds go one after the other, as each begins with what the
// one before has installed.
func (d *database) index(ctx context.Context, workers int, choose func(*view, *codeSetView) *mih.Build) (built bool, err error) {
	return d.indexAs(ctx, workers, choose, d.signals.BeginInBackground)
}

// indexAs is index as an operation that begins in one way or another.
func (d *database) indexAs(ctx context.Context, workers int, choose func(*view, *codeSetView) *mih.Build, begin func(context.Context, event.Op, string) (context.Context, *signal.Operation)) (built bool, err error) {
	d.indexing.Lock()
	defer d.indexing.Unlock()
	v := d.current.Load()
	for !v.acquire() {
		v = d.current.Load()
	}
	defer v.release()
	for set, cv := range v.sets() {
		b := choose(v, set)
		if b == nil {
			continue
		}
		b.Bare, b.Workers = b.Bare || !d.affords(v, set, b), workers
		ctx, op := begin(ctx, event.OpIndex, cv.Name)
		done := set.event()
		done.Level = slog.LevelDebug // it is done all the time
		defer func() { op.End(err, done) }()
		if err := work.Safely(func() error { return b.Run(ctx) }); err != nil {
			return false, fault.Annotate(err, "index collection %q", cv.Name)
		}
		return true, d.committer.show(ctx, func() error {
			// Its space may have been dropped.
			if s := d.committer.states[cv.ID]; s != nil && s.holds(set.set) {
				set.set.table.Install(b)
				d.committer.touch(s)
			}
			return nil
		})
	}
	return false, nil
}

// holds reports whether a code set is still one of the collection's.
func (s *collectionState) holds(set *codeSet) bool {
	return slices.ContainsFunc(s.spaces, func(sp *spaceState) bool { return slices.Contains(sp.sets, set) })
}

// sets yields the code sets of all collections, those of active spaces first.
func (v *view) sets() iter.Seq2[*codeSetView, *collectionView] {
	return func(yield func(*codeSetView, *collectionView) bool) {
		for _, standing := range []spaceStanding{spaceActive, spaceStandby, spaceBuilding} {
			for cv := range v.collections.values() {
				for i := range cv.spaces {
					for j := range cv.spaces[i].sets {
						if set := &cv.spaces[i].sets[j]; set.standing == standing && !yield(set, cv) {
							return
						}
					}
				}
			}
		}
	}
}
