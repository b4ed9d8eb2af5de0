package model

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// leastCentreGain is the mAP that another centre must gain among labelled items. Items
// without labels, which are not measured, lose up to .01 by it where labelled ones gain
// less.
const leastCentreGain = .01

// opensCentre reports whether the centre is to be chosen.
func (tr *trainer) opensCentre() bool {
	return tr.opt.Centre == nil && tr.aim() == AimLabels && tr.sets.several()
}

// chooseCentre chooses the centre where items have several labels, if it is open: by the
// mean over the modalities and over some starts. Another one than the default must be
// better by leastCentreGain, and by half a standard error of the difference, as for
// settings. It reports whether another was taken; starts then have other codes, and settings
// have to be chosen anew.
func (tr *trainer) chooseCentre(ctx context.Context, choosers []*chooser) (changed bool, err error) {
	judging := slices.DeleteFunc(slices.Clone(choosers), func(c *chooser) bool { return !c.judges() })
	if !tr.opensCentre() || len(judging) == 0 {
		return false, nil
	}
	queries := 0
	for _, c := range judging {
		queries += len(c.judge.queries)
	}
	choice := &CentreChoice{}
	var outcomes []*outcome
	for _, share := range centres {
		sets := *tr.sets
		sets.setCentre(share)
		solvers, err := tr.solveStarts(ctx, &sets, min(searchStarts, len(tr.starts)))
		if err != nil {
			return false, err
		}
		o := &outcome{}
		for _, c := range judging {
			precisions := c.meanPrecisions(c.held, c.judge.queries, c.startCodes(solvers), c.prior)
			floats.Scale(float64(queries)/float64(len(judging)*len(precisions)), precisions) // modalities count alike
			o.precisions = append(o.precisions, precisions...)
		}
		o.MAP, o.StdErr = meanError(o.precisions)
		outcomes = append(outcomes, o)
		choice.Tried = append(choice.Tried, CentreMAP{share, o.MAP})
	}
	choice.Chosen = centres[0]
	if m := outcomes[1].over(outcomes[0]); m.MAP > max(leastCentreGain, m.StdErr/2) {
		choice.Chosen = centres[1]
	}
	tr.report.CentreChoice = choice
	if choice.Chosen == tr.report.Centre {
		return false, nil
	}
	tr.setCentre(choice.Chosen)
	if tr.solvers, err = tr.solveStarts(ctx, tr.sets, len(tr.starts)); err != nil {
		return false, err
	}
	for _, c := range choosers {
		c.starts = c.startCodes(tr.solvers)
	}
	return true, nil
}
