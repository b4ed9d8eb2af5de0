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

// Each database has one goroutine that indexes new codes. It works on a view, so no caller waits for it, and
// hands its builds to the committer, which shows them with the next view.

// wantIndex wakes the indexer, or makes it look again after its present work.
func (d *Database) wantIndex() {
	select {
	case d.indexWanted <- struct{}{}:
	default: // it has been asked already
	}
}

// RunIndexer indexes due code sets on half of the processors, loads rows for reranking, and maintains indexes
// of vectors, until the context ends. A failed build is reported as an event, and is due again when the
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

// While writers keep coming, the indexer rests restPerBuild times as long as a build took, at most
// maxIndexRest. Otherwise it would, while a database is being filled, build one short tail after the other on
// the processors that the writers need. Meanwhile searches scan the new codes.
const (
	restPerBuild = 16
	maxIndexRest = 250 * time.Millisecond
)

// An import stores one part after the other as tables, and an index built between two parts is mostly rebuilt
// after the last. So the indexer waits until no part has come for restPerTables times as long as the last one
// took, at most maxTablesRest.
const (
	restPerTables = 4
	maxTablesRest = 5 * time.Second
)

// settle returns when no more tables are expected or the context ends.
func (c *Committer) settle(ctx context.Context) {
	for ctx.Err() == nil {
		left := time.Until(time.Unix(0, c.tablesUntil.Load()))
		if left <= 0 {
			return
		}
		rest(ctx, left)
	}
}

// rest returns after d or when the context ends.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// indexOne runs one due build and reports whether there was one: then there may be another.
func (d *Database) indexOne(ctx context.Context) bool {
	built, err := d.indexAs(ctx, work.Background(), d.Due, d.Signals.BeginUntraced)
	return built && err == nil
}

// Index runs one build on so many goroutines and installs it, so that the next view shows it. It runs the
// first build that choose returns for a code set of the present view, active spaces first. choose returns nil
// if a set needs no build; built is false if no set does. Builds wait for each other, as each starts from the
// result of the one before. Readers and writers do not wait.
func (d *Database) Index(ctx context.Context, workers int, choose func(*View, *CodeSetView) *mih.Build) (built bool, err error) {
	return d.indexAs(ctx, workers, choose, d.Signals.BeginInBackground)
}

// indexAs is Index as an operation that begin starts: a method of signal.Sender.
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
		done.Level = slog.LevelDebug // as it is frequent
		defer func() { op.End(err, done) }()
		if err := work.Safely(func() error { return b.Run(ctx) }); err != nil {
			return false, fault.Annotate(err, "index collection %q", cv.Name)
		}
		return true, d.Committer.Show(ctx, func() error {
			// The space may have been dropped meanwhile. Otherwise no other build was installed of this
			// set since v, as indexing is held.
			if s := d.Committer.States[cv.ID]; s != nil && s.holds(set.Set) {
				set.Set.Table.Install(b)
				d.Committer.Touch(s)
			}
			return nil
		})
	}
	return false, nil
}
