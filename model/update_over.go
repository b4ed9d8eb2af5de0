package model

import (
	"context"
	"fmt"
)

// UpdateOver refits the projections of m to the labelled items of an engine, as they are now. It returns the
// new revision and its statistics, which cover exactly these items. The result is that of Online with
// TeacherLabels on the same items, up to rounding. It needs no record of what has taught before, and costs
// one pass over all items. A modality without items keeps its projection.
//
// It calls Sum of the engine once. The items have their labels as the numbers that m knows them by. The engine
// leaves out items without a label that m knows: they teach nothing.
//
// Errors: one that wraps ErrMismatch if m was learned without labels, or by the methods joint or paper, whose
// statistics hold codes of the training; a *SingularError; the error of the engine.
func UpdateOver(ctx context.Context, m *Model, engine Engine) (next *Model, s *Statistics, err error) {
	defer guard(&err, "in an update")
	if m.Method() != MethodLabels {
		return nil, nil, fmt.Errorf("%w: method %v does not learn from labels alone: train again", ErrMismatch, m.Method())
	}
	sum, err := (&reader{engine: engine}).sum(ctx, statisticsPass(m, nil), nil)
	if err != nil {
		return nil, nil, err
	}
	s = sum.(*statisticsSums).tally.Statistics
	o, err := NewOnline(m, s)
	if err != nil {
		return nil, nil, err
	}
	o.Refit()
	next, err = o.Revision()
	return next, s, err
}
