package model

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// judgeSweeps measures retrieval after each sweep from the chosen start, as starts are
// measured. It tells whether more sweeps would help. It takes as long as judging as
// many starts.
func (tr *trainer) judgeSweeps(ctx context.Context, choosers []*chooser) error {
	if tr.opt.Method != MethodLabels || tr.sets.embedding != nil || tr.opt.Sweeps > MostStarts {
		return nil
	}
	choosers = slices.DeleteFunc(slices.Clone(choosers), func(c *chooser) bool {
		return !c.judges() || c.basis.aim != AimLabels && c.basis.of == nil
	})
	if len(choosers) == 0 {
		return nil
	}
	var sweeps []*solver
	s := newSolver(tr.opt, nil, tr.sets, slices.Clone(tr.hy))
	_, err := s.run(ctx, nil, tr.opt.Sweeps, func(s *solver) {
		sweeps = append(sweeps, &solver{method: s.method, words: s.words, codes: slices.Clone(s.codes), cm: slices.Clone(s.cm)})
	})
	if err != nil {
		return err
	}
	sums := make([]float64, len(sweeps))
	for _, c := range choosers {
		if err := ctx.Err(); err != nil {
			return err
		}
		codes := c.startCodes(sweeps)
		if len(codes) < len(sweeps) {
			return nil // it would take too long
		}
		floats.AddScaled(sums, 1/float64(len(choosers)), c.merits(codes, *tr.opt.Prior))
	}
	tr.report.SweepMAP = sums
	return nil
}
