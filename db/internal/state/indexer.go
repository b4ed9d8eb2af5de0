package state

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
func (d *Database) wantIndex() {
	select {
	case d.indexWanted <- struct{}{}:
	default: // it will
	}
}

// RunIndexer indexes what is due until the context ends.
func (d *Database) RunIndexer(ctx context.Context) {
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
func (d *Database) indexOne(ctx context.Context) bool {
	built, err := d.indexAs(ctx, work.Background(), d.Due, d.Signals.BeginUntraced)
	return built && err == nil
}

// Index runs the first build of tables that choose returns for a code set, on so many
// goroutines, and installs what it has made. Builds go one after the other, as each begins with what the
// one before has installed.
func (d *Database) Index(ctx context.Context, workers int, choose func(*View, *CodeSetView) *mih.Build) (built bool, err error) {
	return d.indexAs(ctx, workers, choose, d.Signals.BeginInBackground)
}

// indexAs is index as an operation that begins in one way or another.
func (d *Database) indexAs(ctx context.Context, workers int, choose func(*View, *CodeSetView) *mih.Build, begin func(context.Context, event.Op, string) (context.Context, *signal.Operation)) (built bool, err error) {
	d.indexing.Lock()
	defer d.indexing.Unlock()
	v := d.Current.Load()
	for !v.Acquire() {
		v = d.Current.Load()
	}
	defer v.Release()
	for set, cv := range v.Sets() {
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
		return true, d.Committer.Show(ctx, func() error {
			// Its space may have been dropped.
			if s := d.Committer.States[cv.ID]; s != nil && s.holds(set.Set) {
				set.Set.Table.Install(b)
				d.Committer.Touch(s)
			}
			return nil
		})
	}
	return false, nil
}

// holds reports whether a code set is still one of the collection's.
func (s *CollectionState) holds(set *CodeSet) bool {
	return slices.ContainsFunc(s.Spaces, func(sp *SpaceState) bool { return slices.Contains(sp.Sets, set) })
}

// Sets yields the code sets of all collections, those of active spaces first.
func (v *View) Sets() iter.Seq2[*CodeSetView, *CollectionView] {
	return func(yield func(*CodeSetView, *CollectionView) bool) {
		for _, standing := range []spaceStanding{spaceActive, spaceStandby, spaceBuilding} {
			for cv := range v.Collections.Values() {
				for i := range cv.Spaces {
					for j := range cv.Spaces[i].Sets {
						if set := &cv.Spaces[i].Sets[j]; set.standing == standing && !yield(set, cv) {
							return
						}
					}
				}
			}
		}
	}
}
