package learn

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// What searches find with an index depends on how many items there are. So that is measured again,
// in the background, when there are twice as many as at the last time, or half as many; until then
// searches compare all vectors (state.IndexView.Measured).

// measureDue reports whether what one of the collections' indexes finds is to be measured again.
func measureDue(changed []*state.CollectionView) bool {
	return slices.ContainsFunc(changed, func(cv *state.CollectionView) bool { return outgrown(cv, nil) != nil })
}

// outgrown returns an index of a collection that has taken in all rows, and is to be measured again
// and not one of those tried; nil if there is none.
func outgrown(cv *state.CollectionView, tried map[*record.VectorIndex]bool) *state.IndexView {
	for i := range cv.Indexes {
		if x := &cv.Indexes[i]; x.Complete && x.Metric == cv.Modalities[x.Modality].Metric && x.Table != nil && !x.Measured() && !x.Behind(cv.NextRow) && !tried[x.VectorIndex] {
			return x
		}
	}
	return nil
}

// KeepMeasured measures indexes again that have been outgrown, until ctx ends or the database fails.
// Open runs it in a goroutine that Close waits for.
func (d *Database) KeepMeasured(ctx context.Context) {
	tried := map[*record.VectorIndex]bool{} // as they were when measuring failed
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.unmeasured:
		}
		for _, c := range d.collectionsNow(func(cv *state.CollectionView) bool { return outgrown(cv, tried) != nil }) {
			octx, op := d.State.Signals.BeginInBackground(ctx, event.OpMeasure, c.Name)
			var id uint32
			err := work.Safely(func() (err error) {
				id, err = c.measureAgain(octx, tried)
				return err
			})
			op.End(err, event.Event{Attrs: []slog.Attr{slog.Int("index", int(id))}})
			if ctx.Err() != nil || d.State.Engine.Log.Err() != nil {
				return
			}
		}
	}
}

// measureAgain measures the index that has been outgrown.
func (c Collection) measureAgain(ctx context.Context, tried map[*record.VectorIndex]bool) (id uint32, err error) {
	var was *record.VectorIndex
	var held []uint32
	t, rows := 0, 0
	err = c.Read(func(_ *state.View, cv *state.CollectionView) error {
		if x := outgrown(cv, tried); x != nil {
			was, t, rows = x.VectorIndex, x.Modality, x.Table.Rows()
			all := roaring.And(cv.Live, cv.Presence[t]).ToArray()
			held, _ = drawn(rand.New(rand.NewPCG(x.Seed, uint64(rows))), all, min(queries, len(all)), 0)
			slices.Sort(held)
		}
		return nil
	})
	if was == nil || err != nil {
		return 0, err
	}
	tried[was] = true
	curve, err := c.measure(ctx, t, was.ID, held)
	if err != nil {
		return was.ID, err
	}
	return was.ID, c.Do(ctx, 0, func(tx *state.Tx, s *state.CollectionState) error {
		return tx.MeasureIndex(s, was.ID, curve, record.IndexReport{Queries: len(held), Items: rows})
	})
}
