package learn

import (
	"context"
	"errors"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// A model knows the labels that it was trained with. The code of an item with other labels comes
// from its features alone. A label that grows gets a direction of its own in the code space, so the
// code of each item that carries it changes. That may be many items: the commit that grows the label
// notes their rows, and recode makes their codes later, block by block. Until then such an item has
// a code that is not the one of its labels (codec.SetRecode), which verification knows.

// GrowLabels gives each label that items carry and the model of a space does not know a
// direction of its own in the code space (model.Online.Grow). space 0 is the active one. One
// commit stores the revision that knows the labels, the statistics, and the set of rows to
// recode; the method recode then makes their codes. It adds its part to out: Grown,
// NoDirection, Forgotten, Revised. There are as many directions left as bits exceed the
// labels, or one more. A label beyond that is named in NoDirection, and is no error.
func (c Collection) GrowLabels(ctx context.Context, space uint32, out *report.Update) error {
	return c.revise(ctx, space, func(u *updater) error {
		out.Space, out.Revision = report.Space(u.cv.Space.ID), u.cv.Space.Revision
		known := u.cv.Space.Learned.Labels()
		if u.l.shrunk() { // the commit below stores the statistics
			if err := u.l.learnAnew(ctx, u.v, u.cv, nil); err != nil {
				return err
			}
		}
		var grown []uint32
		for id, name := range u.cv.Names {
			if _, is := slices.BinarySearch(known, uint32(id)); is {
				continue
			}
			// Labels that no item carries must not use up directions.
			rows, err := record.LabelRows(u.v.Snap, u.cv.ID, uint32(id))
			if err != nil {
				return err
			}
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case rows.IsEmpty():
				continue
			case len(out.NoDirection) > 0: // no direction is left for any label
				out.NoDirection = append(out.NoDirection, name)
				continue
			}
			err = u.l.online.Grow(uint32(id))
			switch {
			case errors.Is(err, model.ErrNoDirection):
				out.NoDirection = append(out.NoDirection, name)
				continue
			case err != nil:
				return u.learning(err)
			}
			// The learner has the direction from here on, in memory alone. If the commit fails, revise
			// makes it forget that.
			grown, out.Grown = append(grown, uint32(id)), append(out.Grown, name)
		}
		if len(grown) == 0 {
			return nil
		}
		u.checkpoint = true // the stored statistics have the fingerprint of a model without these labels
		u.reason = "labels have got directions"
		u.recode = grown
		err := u.commit(ctx)
		out.Revision, out.Revised, out.Forgotten = u.revision, err == nil, u.forgotten
		return err
	})
}

// recodedRows is the most rows that one commit recodes.
const recodedRows = 1024

// recode makes the codes of the rows in SpaceView.Recode again, block by block, and returns
// how many they were. space 0 is the active one. The lesson of such a row, taught by its
// earlier code or labels, goes to the outbox, and the row becomes pending. Each block is a commit, so
// after an error or a crash another call goes on with the rest.
func (c Collection) recode(ctx context.Context, space uint32) (n int, err error) {
	for {
		var block *coded
		err := c.Read(func(v *state.View, cv *state.CollectionView) error {
			if cv.CodesOnly() {
				return nil // Update refuses it, with an error that says why
			}
			cv, err := cv.InSpace(space)
			if err != nil || cv.Space == nil || cv.Recode.IsEmpty() {
				return err
			}
			space = cv.Space.ID
			block, err = encodeSome(ctx, v, cv, firstRows(cv.Recode, recodedRows).ToArray())
			return err
		})
		if err != nil || block == nil {
			return n, err
		}
		err = c.Do(ctx, 0, func(tx *state.Tx, s *state.CollectionState) error {
			sp := s.SpaceByID(space)
			if sp == nil {
				return fault.NotFound("space %d of collection %q", space, s.Name)
			}
			if sp.Space != block.space {
				return nil // another revision has come: encode the block again
			}
			for _, row := range block.rows {
				// Read for all rows before anything changes: reading may fail.
				if _, err := tx.FetchTaught(s, row); err != nil {
					return err
				}
			}
			for i, row := range block.rows {
				if !sp.Recode.B.Contains(row) {
					continue // a write since the view has given it its new code
				}
				// The row has taught its earlier code. That lesson departs, and a later update teaches
				// the row with the new code.
				if err := tx.Unlearn(sp, row); err != nil {
					return err
				}
				if err := tx.SetCodes(s, sp, row, block.encs[i]); err != nil {
					return err
				}
				tx.SetOnline(sp, codec.SetRecode, row, false)
				tx.SetOnline(sp, codec.SetPending, row, block.teaches[i])
				if sp.Changed != nil { // an update goes on, and its view has the row with the old code
					sp.Changed.Add(row)
				}
				n++
			}
			tx.Committer.Touch(s)
			return nil
		})
		if err != nil {
			return n, err
		}
	}
}

// encodeSome encodes items by their rows, which must be ascending and live in the view. It
// works in the goroutine of the caller, and fills coded.teaches.
func encodeSome(ctx context.Context, v *state.View, cv *state.CollectionView, rows []uint32) (*coded, error) {
	out := &coded{space: cv.Space, rows: rows, encs: make([]spaces.Encoding, len(rows)), teaches: make([]bool, len(rows))}
	features, err := record.NewFeatureReader(v.Snap, cv.Descriptor, 0)
	if err != nil {
		return nil, err
	}
	defer features.Close()
	vectors := make([]model.Vector, len(cv.Modalities))
	for i, row := range rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rec, err := record.ReadItem(v.Snap, cv.ID, row)
		if err != nil {
			return nil, err
		}
		if err := features.Seek(vectors, row); err != nil {
			return nil, err
		}
		if out.encs[i], err = cv.Space.Encode(vectors, rec.Labels, nil); err != nil {
			return nil, err
		}
		// Decide here, with the vectors at hand: the committer has none.
		out.teaches[i] = slices.ContainsFunc(cv.Space.Positions, func(t int) bool { return spaces.Has(vectors, t) })
	}
	return out, nil
}
