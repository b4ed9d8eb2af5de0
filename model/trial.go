package model

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/floats"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// A trial is one setting on the sample of a chooser: the features of all rows, and for
// each fold the statistics of the other folds.
type trial struct {
	setting
	anchors int
	unit    float64               // of gamma: 1, or for a linear map half of sigma
	phi     dense.Matrix[float32] // features of the sample, by row
	sets    bool                  // B is that of the label sets, not of codes
	folds   []foldSums            // by fold
}

// foldSums are A and B of the items outside of a fold, without the features of the
// anchors in the fold. B has a row for each bit of the codes, or for each label set of
// the sample. Codes are a linear function of the label set of an item, so projections
// to the sets serve the codes of every start.
type foldSums struct {
	a, b     dense.Matrix[float64]
	from, to int // features that are left out: from to to-1
}

// newTrial maps the sample with at most so many of its vectors as anchors.
func (c *chooser) newTrial(s setting, anchors int) *trial {
	xs, moments := c.prepare(s.features)
	t := &trial{setting: s, unit: 1}
	var rows []int // of the anchors; ascending, so that those of a fold are a run
	if s.kind == MapLinear {
		// Features of a linear map have the unit of the vectors, others have none.
		sigma, _ := moments.sigma()
		t.unit = sigma / 2
	} else {
		t.anchors = min(anchors, c.anchors, len(xs))
		for j := range t.anchors {
			rows = append(rows, j*len(xs)/t.anchors) // the order of rows is random, so these are a random choice
		}
	}
	var at []Vector
	for _, row := range rows {
		at = append(at, xs[row])
	}
	f := newMap(s.kind, moments, at)
	k, workers := f.size(), workerCount()
	t.phi = dense.Of(len(xs), k, make([]float32, len(xs)*k))
	f.applyAll(t.phi.Data, xs, make([]mapScratch, workers))

	// Sum up all folds, then subtract each fold from the total.
	a := dense.Of(k, k, make([]float64, k*k))
	var as []dense.Matrix[float64]
	for fold := range choiceFolds {
		af := dense.Of(k, k, make([]float64, k*k))
		dense.AddGram(af, t.phi.Slice(c.bounds[fold], c.bounds[fold+1]), workers)
		floats.Add(a.Data, af.Data)
		as = append(as, af)
	}
	for fold := range choiceFolds {
		first, end := c.bounds[fold], c.bounds[fold+1]
		af := as[fold]
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
		out.a = dense.Of(rest, rest, make([]float64, rest*rest))
		i := 0
		for row := range k {
			if row < out.from || row >= out.to {
				out.subtract(out.a.Data[i*rest:], a.Data[row*k:], af.Data[row*k:], row+1)
				i++
			}
		}
		as[fold] = dense.Matrix[float64]{} // large
		t.folds = append(t.folds, out)
	}
	c.aim(t, len(c.judge.counts[0]) <= c.q)
	return t
}

// subtract writes x - y to dst, without the features that are left out.
func (s *foldSums) subtract(dst, x, y []float64, columns int) {
	i := 0
	for col := range columns {
		if col < s.from || col >= s.to {
			dst[i] = x[col] - y[col]
			i++
		}
	}
}

// aim sums the B of the trial: for codes, or for label sets.
func (c *chooser) aim(t *trial, sets bool) {
	t.sets = sets
	targets := dense.Of(t.phi.Rows, c.q, c.h)
	if sets {
		targets = c.indicators()
	}
	k, r, workers := t.phi.Cols, targets.Cols, workerCount()
	b := dense.Of(r, k, make([]float64, r*k))
	var bs []dense.Matrix[float64]
	for fold := range choiceFolds {
		from, to := c.bounds[fold], c.bounds[fold+1]
		bf := dense.Of(r, k, make([]float64, r*k))
		dense.AddTN(bf, targets.Slice(from, to), t.phi.Slice(from, to), workers)
		floats.Add(b.Data, bf.Data)
		bs = append(bs, bf)
	}
	for fold := range t.folds {
		out := &t.folds[fold]
		rest := out.a.Cols
		out.b = dense.Of(r, rest, make([]float64, r*rest))
		for row := range r {
			out.subtract(out.b.Data[row*rest:], b.Data[row*k:], bs[fold].Data[row*k:], k)
		}
	}
}

// prepare returns the features of the sample and their moments.
func (c *chooser) prepare(kind FeatureKind) ([]Vector, *moments) {
	p := &c.prepared
	if p.moments == nil || p.kind != kind {
		p.kind, p.xs, p.moments = kind, c.xs, newMoments(c.modality)
		if kind != FeaturesRaw {
			p.xs = slices.Clone(c.xs) // and below a copy of the numbers of each vector
			for i, x := range c.xs {
				p.xs[i].Value = slices.Clone(x.Value)
			}
			newFeatures(kind, c.moments).applyAll(p.xs)
		}
		p.moments.add(p.xs, workerCount())
		p.moments.settle()
	}
	return p.xs, p.moments
}

// evaluate returns the outcomes of several gammas. One without a solution has no
// precisions.
func (c *chooser) evaluate(t *trial, gammas []float64) []*outcome {
	outcomes := make([]*outcome, len(gammas))
	stable := make([]bool, len(gammas)*choiceFolds)
	first := make([]int, choiceFolds) // by fold: number of its first query among all queries
	for f := 1; f < choiceFolds; f++ {
		first[f] = first[f-1] + len(c.judge.queries[f-1])
	}
	for i, g := range gammas {
		outcomes[i] = &outcome{precisions: make([]float64, c.judge.queryCount())}
		outcomes[i].Tried = Tried{FeatureMap: t.features, Map: t.kind, Anchors: t.anchors, Gamma: g}
	}
	parallel(len(c.scratch), len(stable), func(worker, i int) {
		g, f := i/choiceFolds, i%choiceFolds
		precisions := outcomes[g].precisions[first[f]:]
		starts := c.comparing(t)
		stable[i] = c.judgeFold(t, f, gammas[g], worker, starts, func(_, query int, precision float64) {
			precisions[query] += precision / float64(starts)
		})
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
type foldScratch struct{ l, solved, p, u, z []float64 }

// foldProjection returns the projection that is learned from the items outside of the
// fold, in scratch memory, and whether gamma gives one.
func (c *chooser) foldProjection(t *trial, fold int, gamma float64, s *foldScratch) (p dense.Matrix[float64], ok bool) {
	sums := t.folds[fold]
	rest, k, r := sums.a.Cols, t.phi.Cols, sums.b.Rows
	s.l = append(s.l[:0], sums.a.Data...)
	l := dense.Of(rest, rest, s.l)
	for i := range rest {
		l.Data[i*rest+i] += gamma
	}
	if !dense.Cholesky(l, 1) {
		return p, false
	}
	s.solved = append(s.solved[:0], sums.b.Data...)
	solved := dense.Of(r, rest, s.solved)
	dense.CholeskySolve(solved, l, 1)
	s.p = slices.Grow(s.p[:0], r*k)[:r*k]
	clear(s.p) // zeros for the features that are left out
	p = dense.Of(r, k, s.p)
	for i := range r {
		row, full := solved.Data[i*rest:(i+1)*rest], p.Data[i*k:(i+1)*k]
		copy(full, row[:sums.from])
		copy(full[sums.to:], row[sums.from:])
	}
	return p, !slices.ContainsFunc(p.Data, func(v float64) bool { return v-v != 0 })
}

// judgeFold calls judged with the average precision of each query of the fold, under
// the codes of the first so many starts. query counts the queries of the fold. It
// reports whether gamma gives a projection.
func (c *chooser) judgeFold(t *trial, fold int, gamma float64, worker, starts int, judged func(start, query int, precision float64)) bool {
	s := &c.scratch[worker]
	p, ok := c.foldProjection(t, fold, gamma, s)
	if !ok {
		return false
	}
	r := p.Rows
	packed := dense.Pack(p)
	s.u = slices.Grow(s.u[:0], mapRows*r)[:mapRows*r]
	s.z = slices.Grow(s.z[:0], mapRows*c.q)[:mapRows*c.q]
	code := codec.NewCode(c.q)
	queries := c.judge.queries[fold]
	for done := 0; done < len(queries); {
		// Queries are nearly all rows of the fold, in order, so project runs of rows.
		from := int(queries[done])
		to := min(from+mapRows, c.bounds[fold+1])
		end := done
		for end < len(queries) && int(queries[end]) < to {
			end++
		}
		u := dense.Of(to-from, r, s.u)
		dense.MulNT(u, t.phi.Slice(from, to), packed)
		for start := range starts {
			z := s.u
			if t.sets {
				z = s.z
				dense.MulNT(dense.Of(to-from, c.q, z), u, c.starts[start].signs)
			}
			for query := done; query < end; query++ {
				i := int(queries[query]) - from
				codec.PackSigns(code, z[i*c.q:(i+1)*c.q])
				judged(start, query, c.starts[start].judge.precision(worker, fold, queries[query], code))
			}
		}
		done = end
	}
	return true
}

// heldOut returns the projections of all rows of the sample to the current codes of the
// chooser, each learned without its fold, q numbers a row. ok says whether gamma gives
// projections.
func (c *chooser) heldOut(t *trial, gamma float64) (z []float32, ok bool) {
	c.aim(t, false)
	z = make([]float32, t.phi.Rows*c.q)
	stable := make([]bool, choiceFolds)
	parallel(len(c.scratch), choiceFolds, func(worker, f int) {
		s := &c.scratch[worker]
		p, ok := c.foldProjection(t, f, gamma, s)
		if !ok {
			return
		}
		stable[f] = true
		packed := dense.Pack(p)
		s.z = slices.Grow(s.z[:0], mapRows*c.q)[:mapRows*c.q]
		for from := c.bounds[f]; from < c.bounds[f+1]; from += mapRows {
			to := min(from+mapRows, c.bounds[f+1])
			dense.MulNT(dense.Of(to-from, c.q, s.z), t.phi.Slice(from, to), packed)
			for i, v := range s.z[:(to-from)*c.q] {
				z[from*c.q+i] = float32(v)
			}
		}
	})
	return z, !slices.Contains(stable, false)
}

// ridge returns the gamma at a place of the grid.
func (t *trial) ridge(place int) float64 { return digits(math.Pow(10, float64(place)/2) * t.unit) }

// digits rounds x to a few digits, which can be typed.
func digits(x float64) float64 {
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	return x
}
