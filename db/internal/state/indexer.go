package state

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/mih"
)

// One goroutine a database indexes the codes that have come since it last
// looked. It works on a view, so that nobody waits for it, and hands what it has
// made to the committer, which shows it with the next view.

// wantIndex asks the indexer to look, now or when it has done what it is at.
func (d *Database) wantIndex() {
	select {
	case d.indexWanted <- struct{}{}:
	default: // it will
	}
}

// RunIndexer indexes what is due, on half of the processors, loads what puts hits in order, and keeps indexes
// of vectors, until the context ends. A build that fails is told as an event, and is due again when the
// collection changes next.
func (d *Database) RunIndexer(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.indexWanted:
		}
		d.Committer.settle(ctx)
		for began, v := time.Now(), d.Current.Load().Sequence; d.indexOne(ctx); began, v = time.Now(), d.Current.Load().Sequence {
			if d.Current.Load().Sequence != v {
				rest(ctx, min(restPerBuild*time.Since(began), maxIndexRest))
			}
		}
		for d.loadRerank(ctx) {
		}
		d.KeepIndexes(ctx, math.MaxInt)
	}
}

// While writers keep coming, the indexer rests restPerBuild times as long as a build took, and
// at most maxIndexRest, before it looks again: in a database that is being filled it would else
// build one short tail after the other, on the processors that the writers need. Meanwhile
// searches scan what has come.
const (
	restPerBuild = 16
	maxIndexRest = 250 * time.Millisecond
)

// An import stores one part after the other as tables. What is indexed between two of them is
// mostly indexed again after the last, so the indexer waits until none has come for
// restPerTables times as long as the last took, and at most maxTablesRest.
const (
	restPerTables = 4
	maxTablesRest = 5 * time.Second
)

// settle returns when no more tables are expected, or the context ends.
func (c *Committer) settle(ctx context.Context) {
	for ctx.Err() == nil {
		left := time.Until(time.Unix(0, c.tablesUntil.Load()))
		if left <= 0 {
			return
		}
		rest(ctx, left)
	}
}

// rest returns after a time, or when the context ends.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// indexOne runs one build that is due, and reports whether it did: then there may be another.
func (d *Database) indexOne(ctx context.Context) bool {
	built, err := d.indexAs(ctx, work.Background(), d.Due, d.Signals.BeginUntraced)
	return built && err == nil
}

// Index runs one build on so many goroutines, and installs what it has made, so that the next
// view shows it: the first build that choose returns for a code set of the present view, those
// of active spaces first. choose returns nil for a set with nothing to build. built is false
// where there is nothing for any set. Builds wait for each other, as each begins with what the
// one before has installed; readers and writers do not wait.
func (d *Database) Index(ctx context.Context, workers int, choose func(*View, *CodeSetView) *mih.Build) (built bool, err error) {
	return d.indexAs(ctx, workers, choose, d.Signals.BeginInBackground)
}

// indexAs is Index, as an operation that begin has begun: one of the methods of signal.Sender.
func (d *Database) indexAs(ctx context.Context, workers int, choose func(*View, *CodeSetView) *mih.Build, begin func(context.Context, event.Op, string) (context.Context, *signal.Operation)) (built bool, err error) {
	d.indexing.Lock()
	defer d.indexing.Unlock()
	v := d.Current.Load()
	for !v.Acquire() {
		v = d.Current.Load()
	}
	defer v.Release()
	for set, cv := range v.CodeSets() {
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
			// The space may have been dropped meanwhile. If not, nobody else has installed a
			// build of this set since v, as indexing is held.
			if s := d.Committer.States[cv.ID]; s != nil && s.holds(set.Set) {
				set.Set.Table.Install(b)
				d.Committer.Touch(s)
			}
			return nil
		})
	}
	return false, nil
}
