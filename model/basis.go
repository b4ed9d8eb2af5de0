package model

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// A basis is what a chooser solves projections for, in place of what items teach: that is
// a linear function of the basis, another one for each start of C and each prior.
//
//   - AimLabels: the labels; the function is C J D.
//   - Codes: the label sets of the sample; the function is the code of each, times its
//     weight. If there are more than mostTargets sets it is the code by the first start
//     itself, and only that start is compared.
type basis struct {
	y    dense.Matrix[float32] // by row of the sample: what the item has of the basis
	aim  Aim
	sets *labelSets
	of   []uint32 // by label set of the judge: its number in sets; nil for the code itself
}

// newBasis returns the basis for the sample of a judge. first is the solver of the first
// start, and prior that of AimWeighted.
func newBasis(aim Aim, prior float64, sets *labelSets, j *judge, first *solver) basis {
	b := basis{aim: aim, sets: sets, of: j.of}
	columns := len(j.of)
	switch {
	case aim == AimLabels:
		columns = len(sets.labels)
	case columns > mostTargets:
		columns = first.q
		b.of = nil
	}
	b.y = dense.Of(len(j.set), columns, make([]float32, len(j.set)*columns))
	weights := b.weights(prior)
	for row, set := range j.set {
		y := b.y.Data[row*columns : (row+1)*columns]
		labels := sets.sets[j.of[set]]
		switch {
		case aim == AimLabels:
			for _, l := range labels {
				y[l] = unit(len(labels))
			}
		case b.of != nil:
			y[set] = 1
		default:
			signs(y, first.setCode(j.of[set]))
			if weights != nil {
				for i := range y {
					y[i] *= float32(meanWeight(labels, weights))
				}
			}
		}
	}
	return b
}

// weights returns the weights of labels with a prior, nil for AimCodes.
func (b *basis) weights(prior float64) []float64 {
	if b.aim == AimCodes {
		return nil
	}
	return b.sets.weights(b.aim, prior)
}

// directions returns the function of a start and a prior: for each number of the basis a
// row of q. nil is the identity.
func (b *basis) directions(s *startCodes, prior float64) *dense.Packed[float64] {
	weights := b.weights(prior)
	var rows []float64
	switch {
	case b.aim == AimLabels:
		rows = append(rows, s.c...)
		for l, w := range weights {
			floats.Scale(w, rows[l*s.q:(l+1)*s.q])
		}
	case b.of == nil:
		return nil
	default:
		rows = make([]float64, len(b.of)*s.q)
		for set, number := range b.of {
			w := 1.0
			if weights != nil {
				w = meanWeight(b.sets.sets[number], weights)
			}
			addSigns(rows[set*s.q:(set+1)*s.q], s.codes[set*s.words:(set+1)*s.words], w)
		}
	}
	return dense.PackTransposed(dense.Of(len(rows)/s.q, s.q, rows))
}

// startCodes are the codes of one start.
type startCodes struct {
	q, words int
	codes    []uint64  // by label set of the judge
	c        []float64 // C J, for AimLabels
}

// startCodes takes the codes of solvers: of all of them, or of as many as can be compared
// soon.
func (c *chooser) startCodes(solvers []*solver) (starts []*startCodes) {
	work := len(c.judge.queries) * c.basis.y.Cols * c.q
	for i, s := range solvers {
		if i > 0 && (c.basis.aim != AimLabels && c.basis.of == nil || i*work > startWork) {
			break
		}
		of := &startCodes{q: c.q, words: codec.Words(c.q), c: s.cm}
		for _, set := range c.judge.of {
			of.codes = append(of.codes, s.setCode(set)...)
		}
		starts = append(starts, of)
	}
	return starts
}

// merits returns the mean average precision of some starts, with a prior.
func (c *chooser) merits(starts []*startCodes, prior float64) (merits []float64) {
	for _, s := range starts {
		mean, _ := meanError(c.precisions(c.held, c.judge.queries, s, prior))
		merits = append(merits, mean)
	}
	return merits
}

// project returns the projections of all rows that have not learned from them, as codes
// of a start and a prior: q numbers a row.
func (c *chooser) project(s *startCodes, prior float64) []float32 {
	n := c.held.Rows
	out := make([]float32, n*c.q)
	directions := c.basis.directions(s, prior)
	chunks(workerCount(), n, mapRows, func(_, from, to int) {
		z := c.held.Slice(from, to).Data[:(to-from)*c.held.Cols]
		if directions != nil {
			z = make([]float64, (to-from)*c.q)
			dense.MulNT(dense.Of(to-from, c.q, z), c.held.Slice(from, to), directions)
		}
		for i, v := range z {
			out[from*c.q+i] = float32(min(max(v, -math.MaxFloat32), math.MaxFloat32))
		}
	})
	return out
}
