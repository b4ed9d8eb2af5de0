package learn

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
)

// Updates measure drift, on the items that they let teach. A space that was learned without labels
// has no updates, and is measured when somebody asks.

// NewDrift measures the items that have come since the training of the space of cv, which was learned
// without labels; for other spaces it is ErrInvalid. Nil: none have come. See MeasureDrift.
func NewDrift(ctx context.Context, v *state.View, cv *state.CollectionView) (*report.RevisionDrift, error) {
	sp := cv.Space
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch {
	case sp == nil:
		return nil, fmt.Errorf("%w: collection %q: train it first", fault.ErrNoModel, cv.Name)
	case sp.Learned == nil || sp.HasStatistics():
		return nil, fault.Invalid("space %d of collection %q was not learned without labels: its drift is measured by updates", sp.ID, cv.Name)
	case cv.IndexOnly:
		return nil, cv.LacksVectors("to measure")
	}
	var trained uint64 // rows below were there, or had been
	if len(cv.Revisions) > 0 {
		trained = cv.Revisions[0].Rows
	}
	rows := record.UnionOf(cv.Presence, sp.Positions)
	came := roaring.New()
	came.AddRange(trained, cv.NextRow)
	rows.And(came)
	if rows.IsEmpty() {
		return nil, nil
	}
	d, err := MeasureDrift(ctx, v, cv, rows)
	if d == nil || err != nil {
		return nil, err
	}
	return &report.RevisionDrift{Revision: sp.Revision, Drift: *d}, nil
}
