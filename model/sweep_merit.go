package model

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// mostSolvedSweeps is the largest number of sweeps to judge if there are too many label
// sets to solve for: then each sweep takes projections of its own.
const mostSolvedSweeps = 8

// judgeSweeps measures retrieval after each sweep from the chosen start, as starts are
// measured. It tells whether more sweeps would help. It takes as long as judging as
// many starts, or longer; see solvedMerits.
func (tr *trainer) judgeSweeps(ctx context.Context, choosers []*chooser) error {
	if tr.opt.Method != MethodLabels || tr.sets.embedding != nil || tr.opt.Sweeps > mostStarts {
		return nil
	}
	choosers = slices.DeleteFunc(slices.Clone(choosers), func(c *chooser) bool { return c.refined == nil || c.judge.queryCount() == 0 })
	if len(choosers) == 0 {
		return nil
	}
	var sweeps []*solver
	s := newSolver(tr.opt, nil, tr.sets, slices.Clone(tr.hy))
	_, err := s.run(ctx, nil, tr.opt.Sweeps, func(s *solver) {
		sweeps = append(sweeps, &solver{method: s.method, words: s.words, codes: slices.Clone(s.codes)})
	})
	if err != nil {
		return err
	}
	sums := make([]float64, len(sweeps))
	for _, c := range choosers {
		merits, err := c.sweepMerits(ctx, sweeps)
		if merits == nil || err != nil {
			return err
		}
		floats.Add(sums, merits)
	}
	floats.Scale(1/float64(len(choosers)), sums)
	tr.report.SweepMAP = sums
	return nil
}

// sweepMerits returns the mean average precision under the codes of each sweep, with
// the chosen settings. It returns nil if that cannot be measured, or not soon. It
// leaves the sample with the codes of the last sweep.
func (c *chooser) sweepMerits(ctx context.Context, sweeps []*solver) ([]float64, error) {
	c.starts = nil
	if c.addStarts(c.setOf, sweeps); len(c.starts) == len(sweeps) && len(sweeps) > 1 {
		c.aim(c.refined, true)
		return c.merit(c.refined, c.gamma), ctx.Err()
	}
	return c.solvedMerits(ctx, sweeps)
}

// solvedMerits is sweepMerits by projections solved for the codes of each sweep.
func (c *chooser) solvedMerits(ctx context.Context, sweeps []*solver) (merits []float64, err error) {
	if len(sweeps) > mostSolvedSweeps {
		return nil, nil
	}
	for _, s := range sweeps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.starts = nil
		c.addStarts(c.setOf, []*solver{s})
		c.takeCodes(s)
		c.aim(c.refined, false)
		merit := c.merit(c.refined, c.gamma)
		if merit == nil {
			return nil, nil
		}
		merits = append(merits, merit[0])
	}
	return merits, nil
}
