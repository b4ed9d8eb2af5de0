package state

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/internal/quant"
)

// Directions are the stored projections of the rows of a space in memory: what puts the items
// of one code in order. Each write keeps them current (Tx.SetCodes), and views share them. They
// are loaded in the background, from the first row on and as far as the memory goes
// (Options.RerankCacheBytes): active spaces come first, spaces that stand by have what is
// left, and one that is being built has none. Rows from quant.Table.Covered on are read from
// the store; so nobody waits for directions, and nothing but time depends on them.

// extend has the directions of a space, which knew all rows below before, go on to after: a
// commit has written these rows, or made none of them. Where memory has run out they end at
// before.
func (s *SpaceState) extend(before, after uint64, affordable bool) {
	switch d := s.Directions; {
	case d == nil || !d.IsOpen():
	case uint64(d.Covered()) < before: // they are being loaded
		if d.Touched() > maxTouched {
			d.Close()
		}
	case affordable:
		d.Cover(uint32(after))
	default:
		d.Close()
	}
}

// ForgetDirections takes the directions of the rows from one on out of memory. What stores
// projections, but not by Tx.SetCodes, calls it for the first of its rows: the indexer loads
// them.
func (s *SpaceState) ForgetDirections(row uint32) {
	if s.Directions != nil {
		s.Directions.Forget(row)
	}
}

// directionsFit reports whether no more directions are in memory than may be, as of the last
// view.
func (c *Committer) directionsFit() bool { return int64(c.shown.Directions.all) <= c.rerankBytes }

// A directionsStep is what is to be done next for the directions of a space.
type directionsStep struct {
	collection, space uint32
	to                uint32 // rows below it are to be loaded; 0: all are to be forgotten
}

// minDirections is the number of rows below which it does not pay to load a part of them, and
// maxDirections bounds the bytes that are loaded in one part.
const (
	minDirections = 256
	maxDirections = 4 << 20
)

// maxTouched bounds the rows that are written while directions are being loaded. Beyond it the
// loading gives up, to begin again from where it was; or it has ended long ago, as memory has
// run out.
const maxTouched = 1 << 16

// directionsDue returns what is to be done next for the directions of a space of a collection,
// and whether there is anything.
func (d *Database) directionsDue(v *View, cv *CollectionView, sp *SpaceView) (step directionsStep, due bool) {
	t := sp.Directions
	if t == nil || sp.Numbers.Building || sp.unreadable {
		return step, false
	}
	room := d.rerankBytes - int64(v.Directions.all)
	if sp.Space.ID == cv.Active { // others give way
		room = d.rerankBytes - int64(v.Directions.active)
	} else if room < 0 && t.Bytes() > 0 {
		return directionsStep{collection: cv.ID, space: sp.Space.ID}, true
	}
	left, stride := int64(cv.NextRow)-int64(t.Covered()), int64(sp.Space.Bits)+1
	rows := min(left, max(room, 0)/stride, max(maxDirections/stride, minDirections))
	if rows <= 0 || rows < minDirections && rows < left {
		return step, false
	}
	return directionsStep{cv.ID, sp.Space.ID, t.Covered() + uint32(rows)}, true
}

// loadDirections does one step for the directions of some space, and reports whether there was
// one: then there may be another. Of what cannot be read an event tells; the directions end
// there until the database is opened again.
func (d *Database) loadDirections(ctx context.Context) bool {
	d.indexing.Lock() // parts follow each other
	defer d.indexing.Unlock()
	v := d.Latest()
	var step directionsStep
	due := false
	for set, cv := range v.Sets() { // active spaces first
		if step, due = d.directionsDue(v, cv, cv.SpaceNumber(set.Space)); due {
			break
		}
	}
	v.Release()
	if !due {
		return false
	}
	show := func(f func(s *CollectionState, sp *SpaceState)) error {
		return d.Committer.Show(ctx, func() error {
			if s := d.Committer.States[step.collection]; s != nil { // neither may be there any more
				if sp := s.SpaceByID(step.space); sp != nil {
					f(s, sp)
					d.Committer.Touch(s)
				}
			}
			return nil
		})
	}
	if step.to == 0 {
		return show(func(_ *CollectionState, sp *SpaceState) { sp.Directions.Forget(0) }) == nil
	}
	if show(func(_ *CollectionState, sp *SpaceState) { sp.Directions.Open() }) != nil {
		return false
	}
	// What is written after this view the directions hear of.
	v = d.Latest()
	defer v.Release()
	cv, found := v.Collections.Get(step.collection)
	if !found {
		return true
	}
	sp := cv.SpaceNumber(step.space)
	if sp == nil {
		return true
	}
	octx, op := d.Signals.BeginUntraced(ctx, event.OpProjections, cv.Name)
	end := min(uint64(step.to), cv.NextRow)
	var part *quant.Part
	err := work.Safely(func() (err error) {
		part, err = sp.readDirections(octx, v, cv.ID, uint32(end))
		return err
	})
	if err != nil && ctx.Err() == nil {
		err = fault.Annotate(err, "projections of space %d of collection %q", step.space, cv.Name)
	}
	shown := show(func(s *CollectionState, sp *SpaceState) {
		if err != nil {
			sp.unreadable = true
			sp.Directions.Close()
			return
		}
		sp.Directions.Install(part, uint32(end))
		if end == cv.NextRow { // they have heard of all rows since
			sp.extend(end, s.Counters.NextRow, true)
		}
	})
	op.End(err, event.Event{Level: slog.LevelDebug, Space: step.space, Items: int64(end) - int64(sp.Directions.Covered())})
	return err == nil && shown == nil
}

// readDirections reads the projections of the rows from those in memory to end. v is the view
// that the space is of.
func (sp *SpaceView) readDirections(ctx context.Context, v *View, collection uint32, end uint32) (*quant.Part, error) {
	width, from := sp.Space.ProjectionBytes(), sp.Directions.Covered()
	k := sp.Space.Projections(collection)
	part := quant.NewPart(sp.Space.Bits, from)
	first, last := k.Block(codec.KindProjection, from), codec.PrefixEnd(k.Block(codec.KindProjection, end-1))
	err := record.ForEachEntryIn(v.Snap, first, last, func(row uint32, entry []byte) error {
		if row%codec.BlockRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if len(entry) != width {
			return fault.Corrupt(fmt.Errorf("%d bytes, not %d", len(entry), width), "projection of row %d", row)
		}
		if row >= from && row < end {
			part.Append(row, codec.Direction(entry))
		}
		return nil
	})
	return part, err
}
