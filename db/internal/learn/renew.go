package learn

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// An index of vectors is made anew in the background when enough of its vectors have come, changed or gone
// (state.IndexView.Due). Searches use the old one until the new one is complete.

// renewDue reports whether an index of one of the collections is to be made anew.
func renewDue(changed []*state.CollectionView) bool {
	return slices.ContainsFunc(changed, func(cv *state.CollectionView) bool { return outgrown(cv, nil) != nil })
}

// outgrown returns an index of a collection that is to be made anew, and not one of those tried; nil if
// there is none.
func outgrown(cv *state.CollectionView, tried map[*record.VectorIndex]bool) *state.IndexView {
	for i := range cv.Indexes {
		x := &cv.Indexes[i]
		if x.Complete && x.Due() && x.Metric == cv.Modalities[x.Modality].Metric && !cv.Presence[x.Modality].IsEmpty() && !tried[x.VectorIndex] {
			return x
		}
	}
	return nil
}

// A renewing is what knows of the index that is being made anew, if any: there is one at a time. It gives
// way to callers that make one themselves.
type renewing struct {
	mu      sync.Mutex
	callers int    // that make an index
	stop    func() // cancels the renewal that goes on, and waits for its end; nil: none goes on
}

// giveWay has no index be made anew until the caller calls the function that it returns.
func (d *Database) giveWay() (done func()) {
	r := &d.renewing
	r.mu.Lock()
	r.callers++
	stop := r.stop
	r.mu.Unlock()
	if stop != nil {
		stop()
	}
	return func() {
		r.mu.Lock()
		r.callers--
		r.mu.Unlock()
		d.wakeRenewer()
	}
}

// begin returns the context of a renewal, and what is to be called at its end; ok says that no caller
// makes an index.
func (r *renewing) begin(ctx context.Context) (_ context.Context, end func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.callers > 0 {
		return ctx, nil, false
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	r.stop = func() {
		cancel()
		<-ended
	}
	return ctx, func() {
		cancel()
		r.mu.Lock()
		r.stop = nil
		r.mu.Unlock()
		close(ended)
	}, true
}

// wakeRenewer has KeepRenewed look.
func (d *Database) wakeRenewer() {
	select {
	case d.outgrown <- struct{}{}:
	default: // it is going to
	}
}

// KeepRenewed makes indexes anew that have been outgrown, until ctx ends or the database fails. Open
// runs it in a goroutine that Close waits for.
func (d *Database) KeepRenewed(ctx context.Context) {
	tried := map[*record.VectorIndex]bool{} // as they were when that failed
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.outgrown:
		}
		if d.renewAll(ctx, tried, math.MaxInt); ctx.Err() != nil || d.State.Engine.Log.Err() != nil {
			return
		}
	}
}

// renewAll makes those indexes anew that have been outgrown and whose vectors have at most so many numbers.
func (d *Database) renewAll(ctx context.Context, tried map[*record.VectorIndex]bool, most int) {
	due := func(cv *state.CollectionView) bool {
		x := outgrown(cv, tried)
		return x != nil && int(cv.Presence[x.Modality].GetCardinality())*x.Dim <= most
	}
	for _, c := range d.collectionsNow(due) {
		rctx, end, ok := d.renewing.begin(ctx)
		if !ok {
			return
		}
		octx, op := d.State.Signals.BeginInBackground(rctx, event.OpVectorIndex, c.Name)
		var id uint32
		err := work.Safely(func() (err error) {
			id, err = c.renew(octx, tried)
			return err
		})
		op.End(err, event.Event{Attrs: []slog.Attr{slog.Int("index", int(id))}})
		end()
		if ctx.Err() != nil {
			return
		}
	}
}

const (
	settleLoad  = 1 << 18 // rows of an index that Settle loads: a tenth of a second
	settleRows  = 1 << 16 // rows that it takes in: about half a second
	settleRenew = 1 << 22 // numbers of the vectors of an index that it makes anew: some seconds
)

// Settle does for indexes of vectors at the end of a process what its background has not come to, if that
// does not take long: many short processes would else never do it. Close calls it when nothing else goes
// on. What fails is told by events, and is done by a later process.
func (d *Database) Settle() {
	ctx := context.Background()
	d.State.LoadIndexes(ctx, settleLoad)
	d.State.KeepIndexes(ctx, settleRows)
	d.renewAll(ctx, map[*record.VectorIndex]bool{}, settleRenew)
}

// renew makes the index anew that has been outgrown.
func (c Collection) renew(ctx context.Context, tried map[*record.VectorIndex]bool) (id uint32, err error) {
	var was *record.VectorIndex
	err = c.look(func(_ *state.View, cv *state.CollectionView) error {
		if x := outgrown(cv, tried); x != nil {
			was = x.VectorIndex
		}
		return nil
	})
	if was == nil || err != nil {
		return 0, err
	}
	x, err := c.indexVectors(ctx, was.Modality, IndexOptions{Recall: was.Recall, Seed: was.Seed, Workers: work.Background(), Replaces: was.ID})
	if err != nil {
		tried[was] = ctx.Err() == nil // else it has given way
		return was.ID, err
	}
	return x.ID, nil
}

// look calls f with the present view. Unlike Read it works while Close goes on, which waits for it.
func (c Collection) look(f func(v *state.View, cv *state.CollectionView) error) error {
	v := c.DB.Latest()
	defer v.Release()
	cv, err := v.Collection(c.ID, c.Name)
	if err != nil {
		return err
	}
	return f(v, cv)
}
