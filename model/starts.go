package model

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// The random start H0 decides at which orthonormal basis C the solver ends, and so how
// well the bits can be told from the features. mAP varies between starts about as much
// as between good settings. Neither the objective nor the distances of the codes say
// which start is good, but held-out retrieval does. Measuring that is cheap. Codes are
// a linear function of the label set of an item. So once the projections are solved for
// the sets, a start costs a product of queries x sets x bits.
const (
	mostStarts   = 48
	searchStarts = 2       // starts whose mean is the criterion for settings
	startWork    = 1 << 30 // multiplications of all starts, roughly
	mostTargets  = 512     // label sets to solve for, at most
)

// startCodes are the codes of one start.
type startCodes struct {
	judge *judge
	signs *dense.Packed[float64] // codes as +-1: q rows of a number for each label set of the judge
}

// solveStarts makes a solver for each start, and does their sweeps. Codes come from
// labels alone: the codes of MethodLabels stand for those of the other methods, from
// which they hardly differ.
func (tr *trainer) solveStarts(ctx context.Context) error {
	opt := tr.opt
	opt.Method = MethodLabels
	tr.starts = [][]float64{tr.hy}
	if tr.opt.Start == 0 && slices.ContainsFunc(tr.from.open, open.any) {
		tr.starts = tr.drawStarts(tr.affordableStarts())
	}
	for _, hy := range tr.starts {
		s := newSolver(opt, nil, tr.sets, slices.Clone(hy))
		if _, err := s.run(ctx, nil, opt.Sweeps, nil); err != nil {
			return err
		}
		s.cm, s.hy = nil, nil // large if there are many labels; only the codes are needed
		tr.solvers = append(tr.solvers, s)
	}
	return nil
}

// affordableStarts returns the number of starts to choose from. If labels are embedded
// it is the number by which settings are compared: their embedding follows from the
// maps, so they get other codes in the end, and the codes of now do not tell which
// start is best.
func (tr *trainer) affordableStarts() int {
	c, q, most := len(tr.sets.labels), tr.opt.Bits, mostStarts
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

// addStarts takes the codes of the solvers.
func (c *chooser) addStarts(setOf []uint32, solvers []*solver) {
	r := len(c.judge.counts[0])
	of := make([]uint32, r) // by label set of the judge
	for row, set := range c.judge.set {
		of[set] = setOf[row]
	}
	work := c.judge.queryCount() * r * c.q
	for i := range solvers {
		if i > 0 && (r > mostTargets || i*work > startWork) {
			break
		}
		j := *c.judge
		j.codes = nil
		h, signed := dense.Of(r, c.q, make([]float64, r*c.q)), make([]float32, c.q)
		for set, s := range of {
			j.codes = append(j.codes, solvers[i].setCode(s)...)
			signs(signed, solvers[i].setCode(s))
			for b, v := range signed {
				h.Data[set*c.q+b] = float64(v)
			}
		}
		c.starts = append(c.starts, startCodes{&j, dense.PackTransposed(h)})
	}
}

// comparing returns the number of starts to judge while settings are compared.
func (c *chooser) comparing(t *trial) int {
	if t.sets {
		return min(searchStarts, len(c.starts))
	}
	return 1
}

// indicators returns a row for each item of the sample, with 1 at its label set.
func (c *chooser) indicators() dense.Matrix[float32] {
	r := len(c.judge.counts[0])
	x := dense.Of(len(c.judge.set), r, make([]float32, len(c.judge.set)*r))
	for row, set := range c.judge.set {
		x.Data[row*r+int(set)] = 1
	}
	return x
}

// judgeStarts measures the starts under the chosen settings.
func (c *chooser) judgeStarts(t *trial, gamma float64) {
	if len(c.starts) > 1 {
		if !t.sets {
			c.aim(t, true)
		}
		c.merits = c.merit(t, gamma)
	}
}

// merit returns the mean average precision under the codes of each start, or nil if
// gamma gives no projection. If there are several starts, the trial must be aimed at
// label sets.
func (c *chooser) merit(t *trial, gamma float64) []float64 {
	n := len(c.starts)
	sums, stable := make([][]float64, choiceFolds), make([]bool, choiceFolds)
	parallel(len(c.scratch), choiceFolds, func(worker, f int) {
		sums[f] = make([]float64, n)
		stable[f] = c.judgeFold(t, f, gamma, worker, n, func(start, _ int, precision float64) {
			sums[f][start] += precision
		})
	})
	if slices.Contains(stable, false) {
		return nil
	}
	merits := make([]float64, n)
	for _, s := range sums {
		floats.AddScaled(merits, 1/float64(c.judge.queryCount()), s)
	}
	return merits
}

// chooseStart lets the solver begin at the start with the best held-out retrieval, in
// the mean over the modalities; the first of equals. It returns the number of that
// start.
func (tr *trainer) chooseStart(choosers []*chooser) int {
	var merits []float64
	judged := 0.0
	for _, c := range choosers {
		switch {
		case c.merits == nil:
			continue
		case merits == nil:
			merits = make([]float64, len(tr.starts))
		}
		merits = merits[:min(len(merits), len(c.merits))] // as many as all choosers have judged
		floats.Add(merits, c.merits[:len(merits)])
		judged++
	}
	if len(merits) < 2 || tr.sets.embedding != nil { // see affordableStarts
		return 0
	}
	floats.Scale(1/judged, merits)
	best := floats.MaxIdx(merits)
	tr.hy = tr.starts[best]
	tr.report.Start = &StartChoice{Chosen: best + 1, MAP: merits}
	return best
}
