package paper

import (
	"cmp"
	"context"
	"errors"

	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/experiments/chart"
	"github.com/fddhdb/fddhdb/experiments/sets"
	"github.com/fddhdb/fddhdb/model"
)

// A lab runs one experiment on a collection, in one goroutine.
type lab struct {
	kind       *kind
	collection *db.Collection
	set        *sets.Set
	queries    db.Evaluation   // queries to measure with
	base       db.TrainOptions // settings of the flags
	seeds      int
	grid       map[string][]float64     // by name of the axis
	emit       func(*measurement) error // called with each row; may be nil

	bar         *term.Progress
	done, total int // trainings

	modalities []string       // modalities that trainings learn, in order; nil before the first training
	fewest     int            // items of the modality that fewest labelled items have
	pairs      []string       // FROM->TO, as in eval
	directions []string       // the same, for figures
	rows       []*measurement // measured rows, in order
	leftOut    []leftOut      // rows that could not be measured
}

// newLab returns a lab for an experiment on a set, which a collection has, with the settings of the flags.
// grid has the numbers of the axes by name.
func newLab(x *kind, c *db.Collection, s *sets.Set, o *options, grid map[string][]float64,
	bar *term.Progress) *lab {
	l := &lab{kind: x, collection: c, set: s, base: o.TrainOptions, seeds: o.seeds, grid: grid, bar: bar}
	l.base.Method = cmp.Or(l.base.Method, model.MethodLabels)
	l.base.Aim = cmp.Or(l.base.Aim, aimOf(l.base.Method))
	l.queries = db.Evaluation{Queries: map[string][][]float32{}, Labels: s.Queries.Labels, Top: o.top}
	for t, name := range s.Modalities {
		l.queries.Queries[name] = s.Queries.Vectors[t]
	}
	return l
}

// aimOf returns what projections learn by default with a method.
func aimOf(m model.Method) model.Aim {
	if m == model.MethodLabels {
		return model.AimLabels
	}
	return model.AimCodes
}

// run measures all rows. It returns an error if none can be measured.
func (l *lab) run(ctx context.Context) error {
	err := l.kind.run(ctx, l)
	if err == nil && len(l.rows) == 0 {
		err = l.leftOut[0].err
		l.leftOut = nil // the error has the reason
	}
	return err
}

// leftOut is a row that could not be measured, with the error.
type leftOut struct {
	row    string
	bits   int
	err    error
	reason error // the part of err with the reason
}

// An outcome is one training and its figures of retrieval.
type outcome struct {
	training *report.Training
	found    []report.Retrieval
}

// try trains once, with the i-th seed.
func (l *lab) try(ctx context.Context, opt db.TrainOptions, i int) (*outcome, error) {
	l.bar.Report(l.kind.name, int64(l.done), int64(l.total))
	opt.Seed = l.base.Seed + uint64(i)
	t, found, err := l.measured(ctx, opt)
	if err != nil {
		return nil, err
	}
	l.done++
	if l.modalities == nil {
		for _, m := range l.set.Modalities {
			if c, learned := t.Chosen[m]; learned {
				l.modalities = append(l.modalities, m)
				l.fewest = min(cmp.Or(l.fewest, c.Items), c.Items)
			}
		}
		for _, r := range found {
			l.pairs = append(l.pairs, r.From+"->"+r.To)
			l.directions = append(l.directions, chart.DirectionOf(r.From, r.To))
		}
	}
	return &outcome{t, found}, nil
}

// measured trains into a space, measures it, and drops it again, unless it is the first, which is active.
func (l *lab) measured(ctx context.Context, opt db.TrainOptions) (*report.Training, []report.Retrieval,
	error) {
	t, err := l.collection.Train(ctx, opt)
	if err != nil {
		return nil, nil, err
	}
	in, err := l.collection.InSpace(t.Space, 0)
	if err != nil {
		return nil, nil, err
	}
	found, err := in.Evaluate(ctx, l.queries)
	if err == nil && !t.Active {
		err = l.collection.DropSpace(ctx, t.Space)
	}
	return t, found, err
}

// outcomes trains with every seed; opt returns the options of the i-th. If that is
// impossible it records the reason and returns none.
func (l *lab) outcomes(ctx context.Context, row string, opt func(i int) db.TrainOptions) ([]*outcome, error) {
	var outcomes []*outcome
	for i := range l.seeds {
		o, err := l.try(ctx, opt(i), i)
		if why := impossible(err); why != nil {
			l.done += l.seeds - i
			l.leftOut = append(l.leftOut, leftOut{row, opt(i).Bits, err, why})
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

// impossible returns the part of an error that says that a setting is impossible where
// others may not be; nil for any other error.
func impossible(err error) error {
	var bits *fit.BitsError
	var features *fit.FeaturesError
	var anchors *fit.AnchorsError
	switch {
	case errors.Is(err, model.ErrOneClass):
		return model.ErrOneClass
	case errors.As(err, &anchors):
		return anchors
	case errors.As(err, &bits):
		return bits
	case errors.As(err, &features):
		return features
	}
	return nil
}

// measure adds the row with that name, if it is possible.
func (l *lab) measure(ctx context.Context, row string, opt func(i int) db.TrainOptions) error {
	outcomes, err := l.outcomes(ctx, row, opt)
	if outcomes == nil {
		return err
	}
	return l.add(newMeasurement(l, row, opt(0), outcomes))
}

// settle returns, for each seed, the options with the settings that a
// training chooses; nil if that is impossible.
func (l *lab) settle(ctx context.Context, row string, opt db.TrainOptions) ([]db.TrainOptions, error) {
	outcomes, err := l.outcomes(ctx, row, func(int) db.TrainOptions { return opt })
	var settled []db.TrainOptions
	for _, o := range outcomes {
		of := opt
		of.Options = o.training.Settle(opt.Options)
		settled = append(settled, of)
	}
	return settled, err
}

// same is measure with the same options for all seeds.
func (l *lab) same(ctx context.Context, row string, opt db.TrainOptions) error {
	return l.measure(ctx, row, func(int) db.TrainOptions { return opt })
}

// add adds a measured row.
func (l *lab) add(m *measurement) error {
	l.rows = append(l.rows, m)
	if l.emit == nil {
		return nil
	}
	return l.emit(m)
}

// all returns a setting for every modality that trainings learn.
func all[T any](l *lab, value T) map[string]T {
	m := map[string]T{}
	for _, name := range l.modalities {
		m[name] = value
	}
	return m
}

// fewAnchors returns the number of anchors of FDDH, unless another is asked for or there
// are fewer items.
func (l *lab) fewAnchors() int { return cmp.Or(l.base.Anchors, min(sets.PublishedAnchors, l.fewest)) }

// published returns the settings of the authors' experiments with FDDH. Items without
// labels get, in each modality, the code of its projection alone.
func (l *lab) published() db.TrainOptions {
	opt := db.TrainOptions{Rows: l.base.Rows}
	opt.Options = sets.Published(l.modalities, l.base.Bits, l.fewAnchors())
	return opt
}
