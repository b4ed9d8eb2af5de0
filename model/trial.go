package model

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/floats"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/dense"
)

// A trial is one setting on the sample of a chooser: the features of all rows, and
// for each fold the statistics of the other folds.
type trial struct {
	setting
	anchors int
	unit    float64 // of gamma
	phi     dense.Matrix[float32]
	folds   []foldSums
}

// foldSums are A and B of the items outside of a fold, without the features of the
// anchors in the fold.
type foldSums struct {
	a, b     dense.Matrix[float64]
	from, to int // the features that are left out
}

// newTrial maps the sample, with at most so many anchors out of it.
func (c *chooser) newTrial(s setting, anchors int) *trial {
	xs, moments := c.prepare(s.features)
	t := &trial{setting: s, unit: 1}
	var rows []int // of the anchors; ascending, so that those of a fold are a run
	if s.kind == MapLinear {
		// Its features are in the unit of the vectors, the others' are not.
		sigma, _ := moments.sigma()
		t.unit = sigma / 2
	} else {
		t.anchors = min(anchors, c.anchors, len(xs))
		for j := range t.anchors {
			rows = append(rows, j*len(xs)/t.anchors) // the order of rows is random
		}
	}
	var at [][]float32
	for _, row := range rows {
		at = append(at, xs[row])
	}
	f := newMap(s.kind, moments, at)
	k, workers := f.size(), workerCount()
	t.phi = dense.Of(len(xs), k, make([]float32, len(xs)*k))
	f.applyAll(t.phi.Data, xs, make([]mapScratch, workers))
	h := dense.Of(len(xs), c.q, c.h)

	// The sums of all folds, then those of all without one.
	a, b := dense.Of(k, k, make([]float64, k*k)), dense.Of(c.q, k, make([]float64, c.q*k))
	var as, bs []dense.Matrix[float64]
	for fold := range choiceFolds {
		from, to := c.bounds[fold], c.bounds[fold+1]
		af, bf := dense.Of(k, k, make([]float64, k*k)), dense.Of(c.q, k, make([]float64, c.q*k))
		dense.AddGram(af, t.phi.Slice(from, to), workers)
		dense.AddTN(bf, h.Slice(from, to), t.phi.Slice(from, to), workers)
		floats.Add(a.Data, af.Data)
		floats.Add(b.Data, bf.Data)
		as, bs = append(as, af), append(bs, bf)
	}
	for fold := range choiceFolds {
		first, end := c.bounds[fold], c.bounds[fold+1]
		af, bf := as[fold], bs[fold]
		var out foldSums
		for _, row := range rows {
			if row < first {
				out.from++
			}
			if row < end {
				out.to++
			}
		}
		rest := k - (out.to - out.from)
		out.a, out.b = dense.Of(rest, rest, make([]float64, rest*rest)), dense.Of(c.q, rest, make([]float64, c.q*rest))
		subtract := func(dst, x, y []float64, columns int) {
			i := 0
			for col := range columns {
				if col < out.from || col >= out.to {
					dst[i] = x[col] - y[col]
					i++
				}
			}
		}
		i := 0
		for row := range k {
			if row < out.from || row >= out.to {
				subtract(out.a.Data[i*rest:], a.Data[row*k:], af.Data[row*k:], row+1)
				i++
			}
		}
		for bit := range c.q {
			subtract(out.b.Data[bit*rest:], b.Data[bit*k:], bf.Data[bit*k:], k)
		}
		as[fold], bs[fold] = dense.Matrix[float64]{}, dense.Matrix[float64]{} // large
		t.folds = append(t.folds, out)
	}
	return t
}

// prepare returns the features of the sample and their moments.
func (c *chooser) prepare(kind FeatureKind) ([][]float32, *moments) {
	p := &c.prepared
	if p.moments == nil || p.kind != kind {
		p.kind, p.xs, p.moments = kind, c.xs, newMoments(c.modality.Dim)
		if kind != FeaturesRaw {
			d := c.modality.Dim
			data := make([]float32, len(c.xs)*d)
			p.xs = make([][]float32, len(c.xs))
			for i, x := range c.xs {
				p.xs[i] = data[i*d : (i+1)*d]
				copy(p.xs[i], x)
			}
			newFeatures(kind, c.moments).applyAll(p.xs)
		}
		p.moments.add(p.xs, workerCount())
	}
	return p.xs, p.moments
}

// evaluate returns the outcomes of several gammas; one without a solution has no
// precisions.
func (c *chooser) evaluate(t *trial, gammas []float64) []*outcome {
	outcomes := make([]*outcome, len(gammas))
	stable := make([]bool, len(gammas)*choiceFolds)
	first := make([]int, choiceFolds) // of the queries of a fold among all
	for f := 1; f < choiceFolds; f++ {
		first[f] = first[f-1] + len(c.judge.queries[f-1])
	}
	for i, g := range gammas {
		outcomes[i] = &outcome{precisions: make([]float64, c.judge.queryCount())}
		outcomes[i].Tried = Tried{FeatureMap: t.features, Map: t.kind, Anchors: t.anchors, Gamma: g}
	}
	parallel(workerCount(), len(stable), func(worker, i int) {
		g, f := i/choiceFolds, i%choiceFolds
		stable[i] = c.judgeFold(t, f, gammas[g], worker, outcomes[g].precisions[first[f]:])
	})
	for i, o := range outcomes {
		for f := range choiceFolds {
			if !stable[i*choiceFolds+f] {
				o.precisions = nil
			}
		}
		if o.precisions != nil {
			o.MAP, o.StdErr = meanError(o.precisions)
		}
	}
	return outcomes
}

// foldScratch is the memory of one goroutine.
type foldScratch struct{ l, solved, p, z []float64 }

// judgeFold writes the average precision of each query of the fold, and reports
// whether gamma gives a projection.
func (c *chooser) judgeFold(t *trial, fold int, gamma float64, worker int, precisions []float64) bool {
	sums, s := t.folds[fold], &c.scratch[worker]
	rest, k := sums.a.Cols, t.phi.Cols
	s.l = append(s.l[:0], sums.a.Data...)
	l := dense.Of(rest, rest, s.l)
	for i := range rest {
		l.Data[i*rest+i] += gamma
	}
	if !dense.Cholesky(l, 1) {
		return false
	}
	s.solved = append(s.solved[:0], sums.b.Data...)
	solved := dense.Of(c.q, rest, s.solved)
	dense.CholeskySolve(solved, l, 1)
	s.p = slices.Grow(s.p[:0], c.q*k)[:c.q*k]
	clear(s.p) // zeros for what is left out
	p := dense.Of(c.q, k, s.p)
	for bit := range c.q {
		row, full := solved.Data[bit*rest:(bit+1)*rest], p.Data[bit*k:(bit+1)*k]
		copy(full, row[:sums.from])
		copy(full[sums.to:], row[sums.from:])
	}
	for _, v := range p.Data {
		if v-v != 0 {
			return false
		}
	}
	packed := dense.Pack(p)
	s.z = slices.Grow(s.z[:0], mapRows*c.q)[:mapRows*c.q]
	z := s.z
	code := codec.NewCode(c.q)
	queries := c.judge.queries[fold]
	for len(queries) > 0 {
		// Queries are nearly all rows of the fold, in their order: project runs.
		from := int(queries[0])
		to := min(from+mapRows, c.bounds[fold+1])
		dense.MulNT(dense.Of(to-from, c.q, z), t.phi.Slice(from, to), packed)
		for len(queries) > 0 && int(queries[0]) < to {
			i := int(queries[0]) - from
			codec.PackSigns(code, z[i*c.q:(i+1)*c.q])
			precisions[0] = c.judge.precision(worker, fold, queries[0], code)
			queries, precisions = queries[1:], precisions[1:]
		}
	}
	return true
}

// ridge returns the gamma at a place of the grid, in digits that can be typed.
func (t *trial) ridge(place int) float64 {
	g, _ := strconv.ParseFloat(strconv.FormatFloat(math.Pow(10, float64(place)/2)*t.unit, 'g', 3, 64), 64)
	return g
}
