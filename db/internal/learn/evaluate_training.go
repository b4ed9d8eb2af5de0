package learn

import (
	"context"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
)

// EvaluateTraining trains on a view, and measures queries by the codes that all items would
// get. It stores nothing, uses all processors, and holds all codes in memory. Errors are those
// of TrainOn and Evaluate.
func EvaluateTraining(ctx context.Context, v *state.View, cv *state.CollectionView, opt TrainOptions, e *Evaluation) (*report.Training, []report.Retrieval, error) {
	var t *report.Training
	found, err := e.evaluate(ctx, v, cv, func(v *state.View, cv *state.CollectionView) (*state.CollectionView, rowCodes, error) {
		if cv.IndexOnly {
			return nil, nil, cv.LacksVectors("to learn from")
		}
		l, err := TrainOn(ctx, v, cv, opt)
		if err != nil {
			return nil, nil, err
		}
		start := time.Now()
		all, err := encodeRows(ctx, v, cv, l.space, work.All(), 0, cv.NextRow, 0, func(done int) {
			if opt.Progress != nil {
				opt.Progress("encode", int64(done), int64(cv.Items))
			}
		})
		if err != nil {
			return nil, nil, err
		}
		seconds := l.result.Report.Seconds
		seconds["encode"] = time.Since(start).Seconds()
		seconds["total"] += seconds["encode"]
		t = all.training(l.result, l.leftOut)
		// The space is not stored, so views cannot show it: put it into a copy of the view.
		trained := *cv
		trained.Space = all.space
		return &trained, all.rowCodes(cv), nil
	})
	if err != nil {
		return nil, nil, err
	}
	return t, found, nil
}

// training returns the report of a training that was evaluated and not stored.
func (c *coded) training(result *fit.Result, leftOut []string) *report.Training {
	t := &report.Training{Report: result.Report, LeftOut: leftOut}
	for _, e := range c.encs {
		if e.Code != nil {
			t.Items++
		}
	}
	return t
}

// rowCodes gives the codes that the rows would have. cv is the collection, for error texts.
func (c *coded) rowCodes(cv *state.CollectionView) rowCodes {
	return func(ctx context.Context, f func(row uint32, code codec.Code) error) error {
		for i, row := range c.rows {
			if err := ctx.Err(); err != nil {
				return err
			}
			if code := c.encs[i].Code; code != nil {
				if err := f(row, code); err != nil {
					return err
				}
			}
		}
		return nil
	}
}
