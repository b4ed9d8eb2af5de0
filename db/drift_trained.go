package db

import (
	"context"
	"slices"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/report"
)

// drift measures the items that have taught in the space when all have their codes:
// those with features that wait for nothing.
func (b *builder) drift(ctx context.Context) (*report.Drift, error) {
	v := b.c.db.latest()
	defer v.release()
	cv, err := v.collection(b.c.id, b.c.name)
	if err != nil {
		return nil, err
	}
	sp := cv.spaceNumber(b.space)
	if sp == nil {
		return nil, fault.NotFound("space %d of collection %q, which was being built", b.space, cv.Name)
	}
	in := *cv
	in.spaceView = *sp
	taught := unionOf(cv.presence, sp.space.Positions)
	taught.AndNot(sp.pending)
	d, err := measureDrift(ctx, v, &in, taught)
	if d != nil {
		d.Trained = true
	}
	return d, err
}

// keepDrift stores the drift of the present revision with it.
func (tx *tx) keepDrift(sp *spaceState, drift *report.Drift) error {
	for i, r := range sp.revisions {
		if r.Revision != sp.Revision {
			continue
		}
		d := *r
		d.Drift = drift
		if err := tx.writeRevisionDescriptor(sp, &d); err != nil {
			return err
		}
		sp.revisions = slices.Clone(sp.revisions) // views share the slice
		sp.revisions[i] = &d
	}
	return nil
}
