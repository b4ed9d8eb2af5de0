package state

import (
	"context"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/internal/cells"
	"github.com/fddhdb/fddhdb/model"
)

// As items come and go cells become too large or too small. Behind each fold the indexer looks at
// them: one that is too large gets two centres in place of its own, and one that is too small gives
// its rows to others, in one commit each. So an index follows its items without being made anew.

// With n entries in 2 sqrt(n) cells, what a query compares with centres and with entries is about the
// same. These are the sizes, in that of such a cell, at which something is done.
const (
	tooLarge  = 3
	tooSmall  = 1. / 8
	splitMost = 1 << 18 // entries of a cell that is left alone, as a commit would be too long
	splitSome = 1 << 12 // of a cell, from which two centres are found
)

// A recelling replaces cells of an index.
type recelling struct {
	cell    uint32               // whose rows they are: all that it has
	centres map[uint32][]float32 // that change; nil: there is none any more
	next    *cells.Centres
	rows    []uint32
	entries []*cells.Entry
}

// tendIndex splits or gives up one cell of an index, if one is too large or too small, and reports
// whether there may be another. whole has the cells that could not be split, with their entries at that
// time; the caller keeps it.
func (d *Database) tendIndex(ctx context.Context, collection, id uint32, workers int, whole map[uint32]int) (bool, error) {
	unsplit := false
	changed, err := d.change(ctx, collection, id, func(v *View, cv *CollectionView, x *IndexView) (func(tx *Tx, s *CollectionState, x *IndexState) error, int, error) {
		t := x.Table
		usual := math.Sqrt(float64(t.Rows())) / 2
		large, small := -1, -1
		for i := range t.Centres().Numbers() {
			switch n := t.Len(uint32(i)); {
			case t.Centres().Of(uint32(i)) == nil:
			case float64(n) > tooLarge*usual && n > cells.LeastSplit && n <= splitMost && n >= 2*whole[uint32(i)] && (large < 0 || n > t.Len(uint32(large))):
				large = i
			case float64(n) < tooSmall*usual && t.Centres().Count() > 1 && (small < 0 || n < t.Len(uint32(small))):
				small = i
			}
		}
		var r *recelling
		var err error
		switch {
		case large >= 0:
			if r, err = x.split(ctx, v, cv, workers, uint32(large), int(tooSmall*usual)+1); r == nil && err == nil {
				unsplit = true
				whole[uint32(large)] = t.Len(uint32(large))
			}
		case small >= 0:
			r, err = x.giveUp(ctx, v, cv, workers, uint32(small))
		}
		if r == nil || err != nil {
			return nil, 0, err
		}
		for cell := range r.centres { // what has the number then is another cell
			delete(whole, cell)
		}
		return func(tx *Tx, s *CollectionState, x *IndexState) error {
			for cell, centre := range r.centres {
				if err := tx.writeCentre(x, cell, centre); err != nil {
					return err
				}
			}
			for i, row := range r.rows {
				if x.Changed.Contains(row) { // it is taken in another time
					r.entries[i] = nil
					tx.setStale(x, row, true)
				}
				if r.entries[i] == nil {
					tx.setEntry(x, row, nil)
				}
			}
			x.Table.Empty(r.cell)
			x.Table.SetCentres(r.next)
			for i, row := range r.rows {
				if r.entries[i] != nil {
					tx.setEntry(x, row, r.entries[i])
				}
			}
			return nil
		}, len(r.rows), nil
	})
	return changed || unsplit, err
}

// split finds two centres for a cell; nil if not each of them has so many of its rows then. So the
// indexer comes to rest: a split leaves one more cell that is not too small, and only a split makes
// one smaller. Vectors that are nearly the same cannot be told apart.
func (x *IndexView) split(ctx context.Context, v *View, cv *CollectionView, workers int, cell uint32, least int) (*recelling, error) {
	r := &recelling{cell: cell, rows: x.Table.AppendRows(nil, cell)}
	placed, err := cv.Placed(ctx, v.Snap, x.Modality, x.Table.Centres().Geometry, workers, r.rows)
	if err != nil {
		return nil, err
	}
	var some [][]float32
	for i := 0; i < len(placed) && len(some) < splitSome; i += 1 + len(placed)/splitSome {
		if placed[i] != nil && cells.HasPlace(placed[i]) {
			some = append(some, placed[i])
		}
	}
	if len(some) < 2 {
		return nil, nil
	}
	c := x.Table.Centres()
	two, err := cells.Train(ctx, c.Geometry, some, 2, 6, workers)
	if err != nil {
		return nil, err
	}
	if two.Count() < 2 || slices.Equal(two.Of(0), two.Of(1)) {
		return nil, nil
	}
	other := uint32(0)
	for c.Of(other) != nil {
		other++
	}
	r.centres = map[uint32][]float32{cell: two.Of(0), other: two.Of(1)}
	r.next = c.With(r.centres)
	if r.entries, err = encodePlaced(ctx, r.next, placed, workers); err != nil {
		return nil, err
	}
	having := map[uint32]int{}
	for _, e := range r.entries {
		if e != nil {
			having[e.Cell]++
		}
	}
	if having[cell] < least || having[other] < least {
		return nil, nil
	}
	return r, nil
}

// giveUp gives the rows of a cell to others.
func (x *IndexView) giveUp(ctx context.Context, v *View, cv *CollectionView, workers int, cell uint32) (*recelling, error) {
	r := &recelling{cell: cell, rows: x.Table.AppendRows(nil, cell), centres: map[uint32][]float32{cell: nil}}
	placed, err := cv.Placed(ctx, v.Snap, x.Modality, x.Table.Centres().Geometry, workers, r.rows)
	if err != nil {
		return nil, err
	}
	r.next = x.Table.Centres().With(r.centres)
	r.entries, err = encodePlaced(ctx, r.next, placed, workers)
	return r, err
}

// Placed reads the vectors of modality t that rows have, on so many goroutines, and returns their
// coordinates in a geometry; nil where a row has none.
func (cv *CollectionView) Placed(ctx context.Context, r pebble.Reader, t int, g *cells.Geometry, workers int, rows []uint32) ([][]float32, error) {
	m := cv.Modalities[t]
	having := roaring.And(cv.Live, cv.Presence[t])
	placed := make([][]float32, len(rows))
	err := work.ParallelBy(ctx, workers, 64, len(rows), func(i int) error {
		if !having.Contains(rows[i]) {
			return nil
		}
		b, err := record.Get(r, codec.FeatureKey(cv.ID, rows[i], uint16(t)))
		if err == nil && b == nil {
			err = fault.ErrMissing
		}
		if err != nil {
			return fault.ReadError(err, "features %q of row %d", m.Name, rows[i])
		}
		var y model.Vector
		if err := m.DecodeVector(&y, b); err != nil {
			return fault.Corrupt(err, "features %q of row %d", m.Name, rows[i])
		}
		placed[i] = make([]float32, g.Size())
		g.Place(placed[i], y.Value)
		return nil
	})
	return placed, err
}

// encodePlaced makes entries of vectors, given by coordinates; nil of none.
func encodePlaced(ctx context.Context, c *cells.Centres, placed [][]float32, workers int) ([]*cells.Entry, error) {
	entries := make([]*cells.Entry, len(placed))
	const run = 64
	err := work.ParallelBy(ctx, workers, 1, (len(placed)+run-1)/run, func(at int) error {
		q := c.NewQuery()
		for i := at * run; i < min((at+1)*run, len(placed)); i++ {
			if placed[i] != nil {
				q.Set(placed[i])
				entries[i] = new(cells.Entry)
				c.Encode(entries[i], placed[i], c.Nearest(q))
			}
		}
		return nil
	})
	return entries, err
}

// wholeOf returns the cells of an index that could not be split, for tendIndex.
func (d *Database) wholeOf(collection, index uint32) map[uint32]int {
	key := [2]uint32{collection, index}
	if d.whole == nil {
		d.whole = map[[2]uint32]map[uint32]int{}
	}
	if d.whole[key] == nil {
		d.whole[key] = map[uint32]int{}
	}
	return d.whole[key]
}
