package model

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/fddhdb/fddhdb/codec"
)

const (
	// leastCentreGain is the mAP that another centre must gain, in the mean over items with
	// labels and without. It makes settings be chosen twice.
	leastCentreGain = .005

	centreStarts = 3 // starts whose mean is the criterion among items without labels, which takes longer
)

// opensCentre reports whether the centre is to be chosen.
func (tr *trainer) opensCentre() bool {
	return tr.opt.Centre == nil && tr.aim() == AimLabels && tr.sets.several()
}

// chooseCentre chooses the centre where items have several labels, if it is open: by the
// mean over the modalities and over some starts, and over items with labels and without.
// What is left out helps the latter more. Another centre than the default must be better by
// leastCentreGain, and by half a standard error of the difference, as for settings. It
// reports whether another was taken; starts then have other codes, and settings have to be
// chosen anew.
func (tr *trainer) chooseCentre(ctx context.Context, choosers []*chooser) (changed bool, err error) {
	judging := slices.DeleteFunc(slices.Clone(choosers), func(c *chooser) bool { return !c.judges() })
	if !tr.opensCentre() || len(judging) == 0 {
		return false, nil
	}
	queries := 0
	for _, c := range judging {
		queries += len(c.judge.queries)
	}
	choice := &CentreChoice{Chosen: centres[0]}
	var outcomes []*outcome
	for i, share := range centres {
		solvers := tr.solvers
		if i > 0 {
			sets := *tr.sets
			sets.setCentre(share)
			if solvers, err = tr.solveStarts(ctx, &sets, min(searchStarts, len(tr.starts))); err != nil {
				return false, err
			}
		}
		tried, o := CentreMAP{Centre: share}, &outcome{}
		for _, c := range judging {
			starts := c.startCodes(solvers)
			labelled, unlabelled := c.meanPrecisions(c.held, c.judge.queries, starts, c.prior), c.unlabelledPrecisions(starts)
			for _, p := range [][]float64{labelled, unlabelled} {
				floats.Scale(float64(queries)/float64(len(judging)*len(p)), p) // modalities count alike
			}
			tried.MAP += floats.Sum(labelled) / float64(queries)
			tried.Unlabelled += floats.Sum(unlabelled) / float64(queries)
			floats.Add(labelled, unlabelled)
			floats.Scale(.5, labelled)
			o.precisions = append(o.precisions, labelled...)
			if err := ctx.Err(); err != nil {
				return false, err
			}
		}
		outcomes = append(outcomes, o)
		choice.Tried = append(choice.Tried, tried)
	}
	tr.report.CentreChoice = choice
	if m := outcomes[1].over(outcomes[0]); !(m.MAP > max(leastCentreGain, m.StdErr/2)) {
		return false, nil
	}
	choice.Chosen = centres[1]
	tr.setCentre(choice.Chosen)
	if tr.solvers, err = tr.solveStarts(ctx, tr.sets, len(tr.starts)); err != nil {
		return false, err
	}
	for _, c := range choosers {
		c.starts = c.startCodes(tr.solvers)
	}
	return true, nil
}

// unlabelledPrecisions returns the average precision of each query of the judge among items
// without labels, in the mean over some starts: all other rows under the codes of their own
// projections, which have not learned from them.
func (c *chooser) unlabelledPrecisions(starts []*startCodes) []float64 {
	starts = starts[:min(centreStarts, len(starts))]
	queries, rows := c.judge.queries, make([]int, len(c.judge.set))
	for i := range rows {
		rows[i] = i
	}
	a := &among{q: c.q, words: codec.Words(c.q), set: c.judge.set, relevant: c.judge.relevant, harmonic: c.judge.harmonic}
	scratch := a.scratch(workerCount())
	alone, has := fusion{weights: []float64{1}}, [][]bool{slices.Repeat([]bool{true}, len(rows))}
	codes, mean := make([]uint64, len(rows)*a.words), make([]float64, len(queries))
	for _, s := range starts {
		a.encode(codes, alone, [][]float32{c.project(s, c.prior)}, has, scratch)
		chunks(len(scratch), len(queries), 16, func(worker, from, to int) {
			for n := from; n < to; n++ {
				i := int(queries[n])
				mean[n] += a.precision(&scratch[worker], i, codes[i*a.words:(i+1)*a.words], codes, rows) / float64(len(starts))
			}
		})
	}
	return mean
}
