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

// GrowLabels gives labels that items carry and the model of a space does not know a
// direction in the code space, each its own, in one commit: a revision that knows them,
// and the rows whose codes that changes. recode then gives these their codes.
func (c Collection) GrowLabels(ctx context.Context, space uint32, out *report.Update) error {
	return c.revise(ctx, space, func(u *updater) error {
		out.Space, out.Revision = report.Space(u.cv.Space.ID), u.cv.Space.Revision
		known := u.cv.Space.Learned.Labels()
		if u.l.shrunk() { // the statistics are about to be stored
			if err := u.l.learnAnew(ctx, u.v, u.cv, nil); err != nil {
				return err
			}
		}
		var grown []uint32
		for id, name := range u.cv.Names {
			if _, is := slices.BinarySearch(known, uint32(id)); is {
				continue
			}
			rows, err := labelRows(u.v.Snap, u.cv.ID, uint32(id))
			if err != nil {
				return err
			}
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case rows.IsEmpty():
				continue
			case len(out.NoDirection) > 0: // nor is there one for another label
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
			grown, out.Grown = append(grown, uint32(id)), append(out.Grown, name)
		}
		if len(grown) == 0 {
			return nil
		}
		u.checkpoint = true // those that are stored are of a model without these labels
		u.reason = "labels have got directions"
		u.recode = grown
		err := u.commit(ctx)
		out.Revision, out.Revised, out.Forgotten = u.revision, err == nil, u.forgotten
		return err
	})
}

// recodedRows is how many rows get another code in one commit.
const recodedRows = 1024

// recode gives the rows of a space whose codes have to be made again their codes, block
// after block, and returns how many they were. What they have taught by the code before
// goes to the outbox, and they teach again. Where it ends early, another call goes on.
func (c Collection) recode(ctx context.Context, space uint32) (n int, err error) {
	for {
		var block *coded
		err := c.Read(func(v *state.View, cv *state.CollectionView) error {
			if cv.CodesOnly() {
				return nil // refused later, with the words for it
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
				return nil // it has got another revision: once more
			}
			for _, row := range block.rows {
				if _, err := tx.FetchTaught(s, row); err != nil {
					return err
				}
			}
			for i, row := range block.rows {
				if !sp.Recode.B.Contains(row) {
					continue // it has been written meanwhile, with the code that it is to have
				}
				if err := tx.Unlearn(sp, row); err != nil {
					return err
				}
				if err := tx.SetCodes(s, sp, row, block.encs[i]); err != nil {
					return err
				}
				tx.SetOnline(sp, codec.SetRecode, row, false)
				tx.SetOnline(sp, codec.SetPending, row, block.teaches[i])
				if sp.Changed != nil {
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

// encodeSome makes the codes of some rows.
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
		out.teaches[i] = slices.ContainsFunc(cv.Space.Positions, func(t int) bool { return spaces.Has(vectors, t) })
	}
	return out, nil
}
