package state

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/internal/cells"
)

// Opening a database reads the descriptors of all indexes of vectors, and the entries of small ones. The
// entries of the others are loaded in the background, like codes, and searches wait for them.

// An indexLoading is the loading of one index after opening.
type indexLoading struct {
	*Loading
	table *cells.Table // the loaded table; set before the loading ends
}

// loadIndexes reads the descriptors and the stale rows of the collection's indexes, but no entries.
func (s *CollectionState) loadIndexes(r pebble.Reader) error {
	return record.ForEach(r, codec.CollectionKey(codec.KindIndex, s.ID), func(key, value []byte) error {
		id := codec.LastNumber(key)
		d, err := record.DecodeIndex(value, s.Descriptor, id)
		if err != nil {
			return fault.Corrupt(err, "descriptor of index %d of collection %q", id, s.Name)
		}
		if d.Covered > s.Counters.NextRow {
			return fault.Corrupt(fmt.Errorf("it covers %d rows, the next row is %d", d.Covered, s.Counters.NextRow), "descriptor of index %d of collection %q", id, s.Name)
		}
		x := newIndexState(s.ID, d)
		x.loading, x.left = &indexLoading{Loading: newLoading()}, !d.Complete
		if x.Stale.B, err = d.ReadStale(r, s.ID); err != nil {
			return err
		}
		s.Indexes = append(s.Indexes, x)
		return nil
	})
}

// Loaded returns the entries of the index. After an opening it waits until they are loaded; until then no
// rows are merged, so they do not change.
func (x *IndexView) Loaded(ctx context.Context) (*cells.Table, error) {
	if x.Table != nil {
		return x.Table, nil
	}
	if err := x.loading.wait(ctx); err != nil {
		return nil, err
	}
	return x.loading.table, nil
}

// readEntries reads the entries of an index of a collection.
func readEntries(ctx context.Context, r pebble.Reader, collection uint32, x *record.VectorIndex) (*cells.Writer, error) {
	centres, err := x.ReadCentres(r, collection)
	if err != nil {
		return nil, err
	}
	w := cells.NewWriter(centres)
	err = x.EachEntry(r, collection, centres, func(row uint32, e cells.Entry) error {
		w.Put(row, &e)
		if row%codec.BlockRows == 0 {
			return ctx.Err()
		}
		return nil
	})
	w.Resume()
	return w, err
}

// loadFewEntries loads the indexes of a collection that cover at most LoadAtOnce rows. It leaves a damaged
// index to Load, which reports it.
func (s *CollectionState) loadFewEntries(r pebble.Reader) {
	for _, x := range s.Indexes {
		if x.Covered <= LoadAtOnce && x.Complete {
			if w, err := readEntries(context.Background(), r, s.ID, x.VectorIndex); err == nil {
				x.Table, x.loading = w, nil
			}
		}
	}
}

// loadIndex loads the entries of an index of a view that lacks them.
func (d *Database) loadIndex(ctx context.Context, v *View, cv *CollectionView, xv *IndexView) {
	octx, op := d.Signals.BeginInBackground(ctx, event.OpLoad, cv.Name)
	var w *cells.Writer
	err := work.Safely(func() (err error) {
		w, err = readEntries(octx, v.Snap, cv.ID, xv.VectorIndex)
		return err
	})
	if err == nil {
		err = d.Committer.Show(octx, func() error {
			xv.loading.table = w.Publish()                // also if the index is dropped: views before that wait for it
			if s := d.Committer.States[cv.ID]; s != nil { // collection and index may have been dropped
				if x := s.IndexByID(xv.ID); x != nil {
					x.Table, x.loading = w, nil
					d.Committer.Touch(s)
				}
			}
			return nil
		})
	}
	e := event.Event{Attrs: []slog.Attr{slog.Int("index", int(xv.ID))}}
	if w != nil {
		e.Items = int64(w.Table().Rows())
	}
	op.End(err, e)
	switch {
	case err == nil:
		close(xv.loading.done)
	case ctx.Err() != nil:
		notLoaded(xv.loading.Loading, fault.ErrClosed)
	default:
		notLoaded(xv.loading.Loading, err)
	}
}

// loadIndexes loads all indexes of a view.
func (d *Database) loadIndexes(ctx context.Context, v *View) {
	for cv := range v.Collections.Values() {
		for i := range cv.Indexes {
			if x := &cv.Indexes[i]; x.loading != nil && x.Table == nil && !x.loading.ended() {
				d.loadIndex(ctx, v, cv, x)
			}
		}
	}
}

// LoadIndexes loads the indexes of the present view that are not loaded and cover at most so many rows.
func (d *Database) LoadIndexes(ctx context.Context, most uint64) {
	v := d.Latest()
	defer v.Release()
	for cv := range v.Collections.Values() {
		for i := range cv.Indexes {
			if x := &cv.Indexes[i]; x.Complete && x.Table == nil && x.Covered <= most {
				if x.loading.ended() { // Close has ended it, or the index is damaged
					x.loading.Loading = newLoading()
				}
				d.loadIndex(ctx, v, cv, x)
			}
		}
	}
}
