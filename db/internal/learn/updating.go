package learn

import (
	"context"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
)

// Updates in the background. One goroutine a database updates the active spaces of its
// collections as items come, if Options say so. It first recodes the rows that an update has left
// when its process ended.

// updateDue reports whether Items rows to learn from have been written to one of the
// collections since its last update.
func (d *Database) updateDue(changed []*state.CollectionView) bool {
	return d.Items > 0 && slices.ContainsFunc(changed, func(cv *state.CollectionView) bool { return cv.Written >= d.Items })
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
		for _, c := range d.collectionsNow(func(cv *state.CollectionView) bool { return cv.Written >= least }) {
			err := d.updateInBackground(ctx, c, func(c Collection, ctx context.Context) (*report.Update, error) {
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
func (d *Database) updateInBackground(ctx context.Context, c Collection, f func(Collection, context.Context) (*report.Update, error)) error {
	ctx, op := d.State.Signals.BeginInBackground(ctx, event.OpUpdate, c.Name)
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
