package model

import (
	"context"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// partings bounds how often labels are moved apart.
const partings = 8

// partLabels moves labels apart that share a code, and solves again, a few times.
// Labels whose items look the same have nearly the same vector, so it adds more
// randomness to their vectors. s is the first solution; it returns the best one.
func (tr *trainer) partLabels(ctx context.Context, s *solver) (*solver, error) {
	rng := rand.New(rand.NewPCG(tr.opt.Seed, streamParting))
	e := tr.sets.embedding
	sharing := s.sharing(s.labelCodes())
	best, least, vectors, objective := s, len(sharing), slices.Clone(e.e.Data), tr.report.Objective
	other := make([]float64, e.e.Cols)
	for round := 0; round < partings && least > 0; round++ {
		for _, l := range sharing {
			for i := range other {
				other[i] = rng.NormFloat64()
			}
			normalise64(other, 1)
			v := e.label(l)
			floats.Add(v, other)
			normalise64(v, 1)
		}
		s, err := tr.solveOnce(ctx, slices.Clone(tr.hy))
		if err != nil {
			return nil, err
		}
		sharing = s.sharing(s.labelCodes())
		if len(sharing) < least {
			best, least, objective = s, len(sharing), tr.report.Objective
			copy(vectors, e.e.Data)
		}
	}
	copy(e.e.Data, vectors)
	tr.report.Objective = objective
	return best, nil
}
