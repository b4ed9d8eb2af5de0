package model

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/floats"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// A trial is one setting on the sample of a chooser: the features of all rows, and their
// sums.
type trial struct {
	setting
	queries int                   // number of queries to judge it by
	anchors []int                 // rows of the sample that are anchors, ascending
	unit    float64               // of gamma: 1, or for a linear map half of sigma
	phi     dense.Matrix[float32] // features of the sample, by row
	a       dense.Matrix[float64] // their Gram matrix; the lower triangle
	room    *heldRoom
}

// A heldRoom is the memory of trial.hold, which choosers share: fresh memory costs more
// time than what is computed in it.
type heldRoom struct{ l, u, v []float64 }

// matrix returns a matrix of any content in memory that is grown if need be.
func (*heldRoom) matrix(memory *[]float64, rows, cols int) dense.Matrix[float64] {
	n := rows * cols
	if cap(*memory) < n {
		*memory = make([]float64, n)
	}
	return dense.Of(rows, cols, (*memory)[:n])
}

// newTrial maps the sample with at most so many of its vectors as anchors.
func (c *chooser) newTrial(s setting, anchors int) *trial {
	xs, moments := c.prepare(s.features)
	t := &trial{setting: s, queries: c.queries, unit: 1, room: c.room}
	if s.kind == MapLinear {
		// Features of a linear map have the unit of the vectors, others have none.
		sigma, _ := moments.sigma()
		t.unit = sigma / 2
	} else {
		n := min(anchors, c.anchors, len(xs))
		for j := range n {
			t.anchors = append(t.anchors, j*len(xs)/n) // the order of rows is random, so these are a random choice
		}
	}
	var at []Vector
	for _, row := range t.anchors {
		at = append(at, xs[row])
	}
	f := newMap(s.kind, nil, s.width, moments, at)
	k, workers := f.size(), workerCount()
	t.phi = dense.Of(len(xs), k, make([]float32, len(xs)*k))
	f.applyAll(t.phi.Data, xs, make([]mapScratch, workers))
	t.a = dense.Of(k, k, make([]float64, k*k))
	dense.AddGram(t.a, t.phi, workers)
	return t
}

// leastOpen bounds from below the share of an item that its own features leave open. Less
// is rounding.
const leastOpen = 1e-6

// hold returns what projections give each of the first n rows, which they have not learned
// from: a row of as many numbers as y has, for what each row teaches. ok says whether
// gamma has a solution.
//
// Let S = (A + gamma I)^-1 and W = Y' Phi S. If row i is the anchor of feature a, the
// feature is left out of A, and S becomes S - s_a s_a' / S_aa (the inverse of a matrix
// without a row and a column). With phi the features of the row and g = S phi, this gives
//
//	z = W phi - w_a g_a / S_aa  and  h = phi' g - g_a^2 / S_aa
//
// where w_a is column a of W. z has learned from the row itself, with leverage h; without
// it the row has (z - h y) / (1 - h) (Sherman and Morrison). With A + gamma I = L L', all
// of these are products of rows of Phi L'^-1 (v), Y' Phi L'^-1 (x) and L'^-1 (u): g_a = u_a
// v', S_aa = |u_a|^2 and w_a = x u_a'. TestHeldOut solves each anew.
func (t *trial) hold(y dense.Matrix[float32], gamma float64, n int) (held dense.Matrix[float64], ok bool) {
	k, r, workers := t.phi.Cols, y.Cols, workerCount()
	l := t.room.matrix(&t.room.l, k, k)
	copy(l.Data, t.a.Data)
	for i := range k {
		l.Data[i*k+i] += gamma
	}
	if !dense.Cholesky(l, workers) {
		return held, false
	}
	x := dense.Of(r, k, make([]float64, r*k))
	dense.AddTN(x, y, t.phi, workers)
	dense.CholeskyForward(x, l, workers)
	for _, v := range x.Data {
		if v-v != 0 {
			return held, false
		}
	}
	anchors, _ := slices.BinarySearch(t.anchors, n) // of rows that are held out
	u := t.room.matrix(&t.room.u, anchors, k)
	dense.CholeskyInverse(u, l, workers)
	learned := dense.Pack(x)
	own := dense.Of(anchors, r, make([]float64, anchors*r)) // w_a of each
	chunks(workers, anchors, mapRows, func(_, from, to int) {
		dense.MulNT(own.Slice(from, to), u.Slice(from, to), learned)
	})
	held = dense.Of(n, r, make([]float64, n*r))
	v := t.room.matrix(&t.room.v, n, k)
	chunks(workers, n, mapRows, func(_, from, to int) {
		wide := v.Data[from*k : to*k]
		for i, value := range t.phi.Data[from*k : to*k] {
			wide[i] = float64(value)
		}
	})
	dense.CholeskyForward(v, l, workers)
	chunks(workers, n, mapRows, func(_, from, to int) {
		dense.MulNT(held.Slice(from, to), v.Slice(from, to), learned)
		anchor, _ := slices.BinarySearch(t.anchors, from)
		for i := from; i < to; i++ {
			row, vi := held.Data[i*r:(i+1)*r], v.Data[i*k:(i+1)*k]
			leverage := floats.Dot(vi, vi)
			if anchor < anchors && t.anchors[anchor] == i {
				ua := u.Data[anchor*k : (anchor+1)*k]
				g, s := floats.Dot(ua, vi), floats.Dot(ua, ua)
				leverage -= g * g / s
				floats.AddScaled(row, -g/s, own.Data[anchor*r:(anchor+1)*r])
				anchor++
			}
			left := max(1-leverage, leastOpen)
			for j, w := range y.Data[i*r : (i+1)*r] {
				row[j] = (row[j] - leverage*float64(w)) / left
			}
		}
	})
	return held, true
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

// evaluate returns the outcome of a gamma. One without a solution has no precisions.
func (c *chooser) evaluate(t *trial, gamma float64) *outcome {
	o := &outcome{Tried: Tried{FeatureMap: t.features, Map: t.kind, Width: t.width, Anchors: len(t.anchors), Gamma: gamma}}
	queries := c.judge.queries[:t.queries]
	rows := len(c.xs)
	if t.queries < len(c.judge.queries) {
		rows = int(queries[len(queries)-1]) + 1
	}
	held, ok := t.hold(c.basis.y, gamma, rows)
	if !ok {
		return o
	}
	o.held, o.Queries = held, t.queries
	o.precisions = c.meanPrecisions(held, queries, c.starts, c.prior)
	o.MAP, o.StdErr = meanError(o.precisions)
	return o
}

// meanPrecisions is precisions in the mean over the first searchStarts of some starts.
func (c *chooser) meanPrecisions(held dense.Matrix[float64], queries []int32, starts []*startCodes, prior float64) []float64 {
	starts = starts[:min(searchStarts, len(starts))]
	mean := make([]float64, len(queries))
	for _, s := range starts {
		floats.AddScaled(mean, 1/float64(len(starts)), c.precisions(held, queries, s, prior))
	}
	return mean
}

// precisions returns the average precision of queries, which are rows, under the codes of
// a start, with a prior. held is what is held out of each row.
func (c *chooser) precisions(held dense.Matrix[float64], queries []int32, s *startCodes, prior float64) []float64 {
	out := make([]float64, len(queries))
	directions := c.basis.directions(s, prior)
	type room struct {
		z    []float64
		rows []float64
		code codec.Code
	}
	rooms := make([]*room, len(c.judge.scratch))
	chunks(len(rooms), len(queries), mapRows, func(worker, from, to int) {
		if rooms[worker] == nil {
			rooms[worker] = &room{make([]float64, mapRows*c.q), make([]float64, mapRows*held.Cols), codec.NewCode(c.q)}
		}
		w := rooms[worker]
		for i, row := range queries[from:to] {
			copy(w.rows[i*held.Cols:], held.Data[int(row)*held.Cols:(int(row)+1)*held.Cols])
		}
		z := w.rows
		if directions != nil {
			z = w.z
			dense.MulNT(dense.Of(to-from, c.q, z), dense.Of(to-from, held.Cols, w.rows), directions)
		}
		for i := from; i < to; i++ {
			codec.PackSigns(w.code, z[(i-from)*c.q:(i-from+1)*c.q])
			out[i] = c.judge.precision(worker, queries[i], w.code, s.codes)
		}
	})
	return out
}

// ridge returns the gamma at a place of the grid.
func (t *trial) ridge(place int) float64 { return digits(math.Pow(10, float64(place)/2) * t.unit) }

// digits rounds x to a few digits, which can be typed.
func digits(x float64) float64 {
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	return x
}
