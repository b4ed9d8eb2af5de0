package learn

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
)

// A Database is the learning of an open database: the learners of its spaces, and the
// builders at work. There is one for each state.Database. Safe for concurrent use.
type Database struct {
	State *state.Database // the open database; never replaced

	// Options of the background updates; they do not change. KeepUpdated updates the active
	// space of a collection once Items rows to learn from have been written to it, and every
	// Interval if there are any. 0 switches that trigger off.
	Items    int
	Interval time.Duration

	learners  perSpace[learner]  // the statistics in memory
	buildings perSpace[building] // the turns of builders
	wanted    chan struct{}      // wakes KeepUpdated; Written fills it; holds one

	outgrown chan struct{} // wakes KeepRenewed; holds one
	renewing renewing      // the index of vectors that is being made again; locks itself
}

// New returns the learning of a database, which need not be open yet. items and interval
// become the fields Items and Interval.
func New(d *state.Database, items int, interval time.Duration) *Database {
	return &Database{State: d, Items: items, Interval: interval, wanted: make(chan struct{}, 1),
		outgrown: make(chan struct{}, 1)}
}

// A Collection is a handle on a collection that learns. It is a small value to copy, and safe
// for concurrent use. All calls need an open database: the caller holds its Guard, or runs in
// a goroutine that Close waits for.
type Collection struct {
	state.Collection
	in *Database // has the learners and builders of the collection
}

// Of returns the handle with which a collection of the database learns.
func (d *Database) Of(c state.Collection) Collection { return Collection{c, d} }

// Written wakes KeepUpdated if one of the changed collections has enough to learn from, and KeepRenewed if an
// index of vectors of one has been outgrown. The state calls it after each new view, so it does not wait.
func (d *Database) Written(changed []*state.CollectionView) {
	if renewDue(changed) {
		d.wakeRenewer()
	}
	if d.updateDue(changed) {
		select {
		case d.wanted <- struct{}{}:
		default: // KeepUpdated is going to look anyway
		}
	}
}

// Dropped frees the learner of a space that has been dropped. An update that still uses the
// learner keeps it, and fails at its commit.
func (d *Database) Dropped(collection, space uint32) {
	d.learners.remove(spaceKey{collection, space})
	d.buildings.remove(spaceKey{collection, space})
}

// Updates in the background. One goroutine a database updates the active spaces of its
// collections as items come, if Options say so. It first recodes the rows that an update has left
// when its process ended.

// updateDue reports whether Items rows to learn from have been written to one of the
// collections since its last update.
func (d *Database) updateDue(changed []*state.CollectionView) bool {
	return d.Items > 0 && slices.ContainsFunc(changed,
		func(cv *state.CollectionView) bool { return cv.Written >= d.Items })
}

// KeepUpdated completes the recoding of rows, then updates collections by Items and Interval
// until ctx ends or the database fails. An update that fails is an event, and is tried again
// when the collection is next due. Open runs it in a goroutine that Close waits for.
func (d *Database) KeepUpdated(ctx context.Context) {
	for _, c := range d.collectionsNow(func(cv *state.CollectionView) bool { return toRecode(cv) }) {
		err := d.updateInBackground(ctx, c, func(c Collection, ctx context.Context) (*report.Update, error) {
			return nil, c.recodeAll(ctx)
		})
		if err != nil {
			return
		}
	}
	var tick <-chan time.Time
	if d.Interval > 0 {
		ticker := time.NewTicker(d.Interval)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		least := 1
		select {
		case <-ctx.Done():
			return
		case <-tick:
		case <-d.wanted:
			least = d.Items
		}
		// An update sets Written to 0 when it begins. So one that fails is tried again only after as
		// many more writes, and not in a loop.
		for _, c := range d.collectionsNow(
			func(cv *state.CollectionView) bool { return cv.Written >= least }) {
			err := d.updateInBackground(ctx, c, func(c Collection, ctx context.Context) (*report.Update,
				error) {
				return c.Update(ctx, UpdateOptions{})
			})
			if err != nil {
				return
			}
		}
	}
}

// updateInBackground runs f on a collection, when its codes are in memory, as an operation with
// events and a span. Errors and panics of f go into the event. It returns ErrClosed when ctx
// has ended or the database has failed, so that KeepUpdated ends.
func (d *Database) updateInBackground(ctx context.Context, c Collection,
	f func(Collection, context.Context) (*report.Update, error)) error {
	op := d.State.Signals.BeginInBackground(ctx, event.OpUpdate, c.Name)
	var u *report.Update
	err := work.Safely(func() (err error) {
		if err := c.Loaded(ctx); err != nil {
			return err
		}
		u, err = f(c, ctx)
		return err
	})
	op.End(err, UpdateEvent(u))
	if ctx.Err() != nil || d.State.Engine.Log.Err() != nil {
		return fault.ErrClosed
	}
	return nil
}

// collectionsNow returns handles on the collections whose present state want accepts.
func (d *Database) collectionsNow(want func(*state.CollectionView) bool) (all []Collection) {
	v := d.State.Latest()
	defer v.Release()
	for cv := range v.Collections.Values() {
		if want(cv) {
			all = append(all, d.Of(state.Collection{DB: d.State, ID: cv.ID, Name: cv.Name}))
		}
	}
	return all
}

// toRecode reports whether rows of some space of the collection wait for recoding.
func toRecode(cv *state.CollectionView) bool {
	for _, sp := range cv.Spaces {
		if !cv.IndexOnly && !sp.Recode.IsEmpty() {
			return true
		}
	}
	return false
}

// recodeAll recodes the rows that wait in any space of the collection. The codes must be loaded.
// After an error, or a crash, another update of a space goes on with its rows, or the next Open.
func (c Collection) recodeAll(ctx context.Context) error {
	var spaces []uint32
	err := c.Read(func(_ *state.View, cv *state.CollectionView) error {
		for _, sp := range cv.Spaces {
			if !sp.Recode.IsEmpty() {
				spaces = append(spaces, sp.Space.ID)
			}
		}
		return nil
	})
	for _, id := range spaces {
		if err == nil {
			_, err = c.recode(ctx, id)
		}
	}
	return err
}

// A builder stores the codes of a block of rows in one commit, which writers wait for. Tables
// cost a dozen files to make durable, a batch some microseconds a row. So large blocks are
// stored as tables, small ones in a batch.
const (
	BlockRows = 16 << 10 // the rows of a block without a rate limit
	TableRows = 4 << 10  // blocks of so many rows or more are stored as tables
	batchRows = 1 << 10  // the most rows of a block that is to be stored in a batch
)

// blockSize returns the number of rows of a block at a rate in items a second; 0 means no
// limit. It is the work of half a second where that makes a block for tables, else of a tenth
// of a second.
func blockSize(rate int) int {
	switch {
	case rate == 0 || rate >= 2*BlockRows:
		return BlockRows
	case rate >= 2*TableRows:
		return rate / 2
	}
	return min(max(rate/10, 1), batchRows)
}

// pace waits until n items since the given time are no more than rate items a second; 0 means
// no limit. It returns the error of ctx if that ends.
func pace(ctx context.Context, since time.Time, n, rate int) error {
	if rate == 0 {
		return ctx.Err()
	}
	return work.SleepUntil(ctx, since.Add(time.Duration(float64(n)/float64(rate)*float64(time.Second))))
}

// A training works on its view, in which a dropped collection can still be read. So it would go on
// to its end, and fail at its commit. The context that it works with ends earlier.

// errDropped is the cause with which untilDropped ends a context.
var errDropped = errors.New("collection dropped")

// untilDropped returns a context that also ends when the collection is dropped. stop ends it
// and its goroutine; the caller must call it.
func (c Collection) untilDropped(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var gone <-chan struct{}
	err := c.Read(func(_ *state.View, cv *state.CollectionView) error {
		// The commit that drops the collection closes Gone. TestDropCollectionEndsItsTraining of db.
		gone = cv.Gone
		return nil
	})
	if err != nil {
		return ctx, func() { cancel(nil) } // the next call on the collection fails likewise
	}
	go func() {
		select {
		case <-gone:
			cancel(errDropped)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// dropped returns ErrNotFound for an err that comes of a context of untilDropped that ended
// because the collection was dropped. It returns other errors as they are.
func (c Collection) dropped(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == errDropped {
		return fault.NotFound("collection %q: it has been dropped", c.Name)
	}
	return err
}

// Resume returns a function that completes the spaces which are being built in view v, one
// after the other: an earlier process has left them. Open runs the function in a goroutine
// that Close waits for. The function does not use v, so release v before it runs. If it fails
// with a space, or ctx ends, the space stays as far as it has got, for Reindex or the next
// Open; the event says so.
func (d *Database) Resume(ctx context.Context, v *state.View) func() {
	var left []*builder
	for id, cv := range v.Collections.All() {
		for i := range cv.Spaces {
			if n := &cv.Spaces[i].Numbers; n.Building {
				c := d.Of(state.Collection{DB: d.State, ID: id, Name: cv.Name})
				left = append(left, &builder{c: c, space: uint32(n.ID), workers: work.Background()})
			}
		}
	}
	return func() {
		for _, b := range left {
			d.complete(ctx, b)
		}
	}
}

// complete runs a builder as an operation of the background, with events and a span. A panic
// becomes the error of its event.
func (d *Database) complete(ctx context.Context, b *builder) {
	op := d.State.Signals.BeginInBackground(ctx, event.OpReindex, b.c.Name)
	b.progress = op.Progress
	var built builtSpace
	err := work.Safely(func() (err error) {
		built, err = b.run(ctx)
		return err
	})
	e := b.c.Unbuilt(b.space)
	if err == nil {
		e = built.event()
	}
	op.End(err, e)
}
