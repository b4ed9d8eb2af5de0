package learn

import (
	"context"
	"slices"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
)

// drift measures the items that have taught in the space, for revision 1. Call it when all
// items have their codes. It takes the items that have features of the model and are not
// pending for those that have taught.
func (b *builder) drift(ctx context.Context) (*report.Drift, error) {
	v := b.c.DB.Latest()
	defer v.Release()
	cv, err := v.Collection(b.c.ID, b.c.Name)
	if err != nil {
		return nil, err
	}
	sp := cv.SpaceNumber(b.space)
	if sp == nil {
		return nil, fault.NotFound("space %d of collection %q, which was being built", b.space, cv.Name)
	}
	// The space is not the active one yet, so cv shows another space, or none.
	in := *cv
	in.SpaceView = *sp
	taught := record.UnionOf(cv.Presence, sp.Space.Positions)
	taught.AndNot(sp.Pending) // nothing is pending without statistics: all items count
	d, err := MeasureDrift(ctx, v, &in, taught)
	if d != nil {
		d.Trained = true
	}
	return d, err
}

// keepDrift stores a drift with the present revision of a space. It runs in the committer, and
// replaces the descriptor of the revision rather than change it: views share that.
func keepDrift(tx *state.Tx, sp *state.SpaceState, drift *report.Drift) error {
	for i, r := range sp.Revisions {
		if r.Revision != sp.Revision {
			continue
		}
		d := *r
		d.Drift = drift
		if err := tx.WriteRevisionDescriptor(sp, &d); err != nil {
			return err
		}
		sp.Revisions = slices.Clone(sp.Revisions) // views share the slice
		sp.Revisions[i] = &d
	}
	return nil
}
