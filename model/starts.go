package model

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// The random start H0 decides at which orthonormal basis C the solver ends, and so how
// well the bits can be told from the features. mAP varies between starts about as much
// as between good settings. Neither the objective nor the distances of the codes say
// which start is good, but held-out retrieval does. Measuring that is cheap: once the
// projections are solved for a basis, a start costs a product of queries x basis x bits.
const (
	searchStarts = 6       // starts whose mean is the criterion for settings, centre and prior
	startWork    = 1 << 30 // multiplications of all starts, roughly
	mostTargets  = 512     // label sets to solve for, at most
)

// solveStarts makes a solver of label sets for each of the first n starts, and lets it do
// its sweeps. Codes come from labels alone: the codes of MethodLabels stand for those of the
// other methods, from which they hardly differ.
func (tr *trainer) solveStarts(ctx context.Context, sets *labelSets, n int) (solvers []*solver, err error) {
	opt := tr.opt
	opt.Method = MethodLabels
	for _, hy := range tr.starts[:n] {
		s := newSolver(opt, nil, sets, slices.Clone(hy))
		if _, err := s.run(ctx, nil, opt.Sweeps, nil); err != nil {
			return nil, err
		}
		s.hy = nil
		if tr.aim() != AimLabels {
			s.cm = nil // large if labels are embedded; only the codes are needed
		}
		solvers = append(solvers, s)
	}
	return solvers, nil
}

// takeStarts draws the starts. A given one goes first and is taken for the solver; the
// others help to choose settings.
func (tr *trainer) takeStarts() {
	given, n := tr.opt.Start, 1
	if slices.ContainsFunc(tr.from.open, open.any) {
		n = tr.affordableStarts()
	}
	if given == 0 {
		tr.starts = tr.drawStarts(n)
		return
	}
	n = min(n, searchStarts)
	drawn := tr.drawStarts(max(n, given))
	tr.hy = drawn[given-1]
	tr.starts = slices.Insert(slices.Delete(drawn, given-1, given), 0, tr.hy)[:n]
}

// affordableStarts returns the number of starts to choose from. If labels are embedded
// it is the number by which settings are compared: their embedding follows from the
// maps, so they get other codes in the end, and the codes of now do not tell which
// start is best.
func (tr *trainer) affordableStarts() int {
	c, q, most := len(tr.sets.labels), tr.opt.Bits, MostStarts
	if tr.sets.embedding != nil {
		most = searchStarts
	}
	members := 0
	for _, set := range tr.sets.sets {
		members += len(set)
	}
	// A sweep is a decomposition, about 20 c^2 q, and a product of sets and labels.
	work := tr.opt.Sweeps * (20*c*c*q + 2*members*q)
	return max(1, min(most, startWork/work))
}

// drawStarts returns the first n starts: H0 Y0' of the scan, and for other H0 a random
// matrix with rows of the same length.
func (tr *trainer) drawStarts(n int) [][]float64 {
	items := make([]float64, len(tr.sets.labels)) // by label
	for i, set := range tr.sets.sets {
		for _, l := range set {
			items[l] += float64(tr.sets.counts[i])
		}
	}
	starts := [][]float64{tr.hy}
	rng := rand.New(rand.NewPCG(tr.opt.Seed, streamStarts))
	for len(starts) < n {
		var hy []float64
		for _, n := range items {
			for range tr.opt.Bits {
				hy = append(hy, math.Sqrt(n)*rng.NormFloat64())
			}
		}
		starts = append(starts, hy)
	}
	return starts
}

// choosePrior chooses the prior, if it is open: by the mean over the modalities and over
// some starts. Larger ones must be better by more than nothing, but not by a standard
// error: they are steps of one thing, and the best of neighbours costs little.
func (tr *trainer) choosePrior(choosers []*chooser) {
	if tr.opt.Prior != nil {
		return
	}
	prior := DefaultPrior
	tr.opt.Prior = &prior
	choice := &PriorChoice{}
	for _, a := range priors {
		mean, n := 0.0, 0.0
		for _, c := range choosers {
			if c.judges() {
				merit, _ := meanError(c.meanPrecisions(c.held, c.judge.queries, c.starts, a))
				mean += merit
				n++
			}
		}
		if n == 0 {
			return
		}
		choice.Tried = append(choice.Tried, PriorMAP{a, mean / n})
	}
	best := slices.MaxFunc(choice.Tried, func(a, b PriorMAP) int { return cmp.Compare(a.MAP, b.MAP) })
	prior, choice.Chosen = best.Prior, best.Prior
	tr.report.PriorChoice = choice
}

// chooseStart lets the solver begin at the start with the best held-out retrieval, in
// the mean over the modalities; the first of equals. It returns the position of that
// start.
func (tr *trainer) chooseStart(choosers []*chooser) int {
	tr.report.Start = &StartChoice{Chosen: max(1, tr.opt.Start)}
	if tr.opt.Start > 0 {
		return 0
	}
	var judging []*chooser
	judged := len(tr.starts) // as many as all choosers have
	for _, c := range choosers {
		judged = min(judged, len(c.starts))
		if c.judges() {
			judging = append(judging, c)
		}
	}
	if len(judging) == 0 || judged < 2 || tr.sets.embedding != nil { // see affordableStarts
		return 0
	}
	merits := make([]float64, judged)
	for _, c := range judging {
		floats.AddScaled(merits, 1/float64(len(judging)), c.merits(c.starts[:judged], *tr.opt.Prior))
	}
	best := floats.MaxIdx(merits)
	tr.hy = tr.starts[best]
	tr.report.Start = &StartChoice{Chosen: best + 1, MAP: merits}
	return best
}
