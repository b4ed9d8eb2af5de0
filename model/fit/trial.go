package fit

import (
	"math"
	"slices"
	"strconv"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/aims"
	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"github.com/fddhdb/fddhdb/model/internal/rank"
	"gonum.org/v1/gonum/floats"
)

// judgePairs bounds the pairs of a query and a label set that a judgement compares: a
// fraction of a second. With many label sets it leaves out queries.
const judgePairs = 4 << 20

// A judge measures the codes that projections give sampled items with known labels. Each
// item is a query to the codes of the labels of all others. A label set has one code, so
// these are a list of label sets with counts.
type judge struct {
	set      []int32    // by row of the sample: its label set, 0 to sets-1
	of       []uint32   // by label set: its number in the training
	counts   []int32    // by label set: its rows
	relevant [][]bool   // by two label sets: whether they share a label
	queries  []int32    // rows that are relevant to others
	harmonic []float64  // see database.harmonic
	scratch  []judgment // by worker
}

// judgment is the memory of one goroutine.
type judgment struct {
	dist []uint16
	ties []rank.Tie // by distance; empty between judgements
}

// newJudge takes the label set of each row of the sample, the label sets, and the length
// of codes.
func newJudge(setOf []uint32, all *labelSets, bits int) *judge {
	j := &judge{harmonic: rank.HarmonicNumbers(len(setOf))}
	j.set, j.of, j.relevant = rank.RelevantSets(setOf, all.sets, len(all.labels))
	j.counts = make([]int32, len(j.of))
	for _, s := range j.set {
		j.counts[s]++
	}
	limit := max(1, judgePairs/max(1, len(j.of)))
	for row, own := range j.set {
		for s, relevant := range j.relevant[own] {
			if relevant && (j.counts[s] > 1 || int32(s) != own) {
				j.queries = append(j.queries, int32(row))
				break
			}
		}
		if len(j.queries) == limit {
			break
		}
	}
	for range parallel.Workers() {
		j.scratch = append(j.scratch,
			judgment{dist: make([]uint16, len(j.of)), ties: make([]rank.Tie, bits+1)})
	}
	return j
}

// precision returns the average precision of a row as a query with this code, among the
// codes of the label sets, expected over all orders of ties.
func (j *judge) precision(worker int, row int32, code codec.Code, codes []uint64) float64 {
	s := &j.scratch[worker]
	codec.Distances(s.dist, code, codes)
	own := j.set[row]
	relevant := j.relevant[own]
	nearest, farthest := len(s.ties), 0
	for set, d := range s.dist {
		t := &s.ties[d]
		n := j.counts[set]
		if int32(set) == own {
			n-- // the query itself
		}
		t.Rows += n
		if relevant[set] {
			t.Relevant += n
		}
		nearest, farthest = min(nearest, int(d)), max(farthest, int(d))
	}
	ties := s.ties[nearest : farthest+1]
	defer clear(ties)
	return rank.ExpectedPrecision(ties, j.harmonic)
}

// A basis has the targets that a chooser solves projections for. The lessons of items are a linear function
// of the basis, another one for each start of C and each prior.
//
//   - AimLabels: the labels; the function is C J D.
//   - Codes: the label sets of the sample; the function is the code of each, times its weight. If there
//     are more than mostTargets sets it is the code by the first start itself, and only that start is
//     compared.
type basis struct {
	y    dense.Matrix[float32] // by row of the sample: what the item has of the basis
	aim  model.Aim
	sets *labelSets
	of   []uint32 // by label set of the judge: its number in sets; nil for the code itself
}

// newBasis returns the basis for the sample of a judge. first is the solver of the first start, and prior the
// prior of AimWeighted.
func newBasis(aim model.Aim, prior float64, sets *labelSets, j *judge, first *solution) basis {
	b := basis{aim: aim, sets: sets, of: j.of}
	columns := len(j.of)
	switch {
	case aim == model.AimLabels:
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
		case aim == model.AimLabels:
			for _, l := range labels {
				y[l] = aims.Unit(len(labels))
			}
		case b.of != nil:
			y[set] = 1
		default:
			aims.Signs(y, first.setCode(j.of[set]))
			if weights != nil {
				for i := range y {
					y[i] *= float32(aims.MeanWeight(labels, weights))
				}
			}
		}
	}
	return b
}

// weights returns the weights of labels with a prior, nil for AimCodes.
func (b *basis) weights(prior float64) []float64 {
	if b.aim == model.AimCodes {
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
	case b.aim == model.AimLabels:
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
				w = aims.MeanWeight(b.sets.sets[number], weights)
			}
			aims.AddSigns(rows[set*s.q:(set+1)*s.q], s.codes[set*s.words:(set+1)*s.words], w)
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

// startCodesOf takes the codes of solutions: of all of them, or of as many as can be compared
// soon.
func startCodesOf(j *judge, b *basis, solved []*solution) (starts []*startCodes) {
	for i, s := range solved {
		work := len(j.queries) * b.y.Cols * s.q
		if i > 0 && (b.aim != model.AimLabels && b.of == nil || i*work > startWork) {
			break
		}
		of := &startCodes{q: s.q, words: s.words, c: s.cm}
		for _, set := range j.of {
			of.codes = append(of.codes, s.setCode(set)...)
		}
		starts = append(starts, of)
	}
	return starts
}

// merits returns the mean average precision of some starts, with a prior.
func (t *tuning) merits(starts []*startCodes, prior float64) (merits []float64) {
	for _, s := range starts {
		mean, _ := rank.MeanError(t.precisions(t.held, t.judge.queries, s, prior))
		merits = append(merits, mean)
	}
	return merits
}

// project returns the projections of all rows that have not learned from them, as codes
// of a start and a prior: q numbers a row.
func (t *tuning) project(s *startCodes, prior float64) []float32 {
	n := t.held.Rows
	out := make([]float32, n*t.q)
	directions := t.basis.directions(s, prior)
	parallel.Chunks(parallel.Workers(), n, parallel.Rows, func(_, from, to int) {
		z := t.held.Slice(from, to).Data[:(to-from)*t.held.Cols]
		if directions != nil {
			z = make([]float64, (to-from)*t.q)
			dense.MulNT(dense.Of(to-from, t.q, z), t.held.Slice(from, to), directions)
		}
		for i, v := range z {
			out[from*t.q+i] = float32(min(max(v, -math.MaxFloat32), math.MaxFloat32))
		}
	})
	return out
}

// A trial is one setting on the sample of a chooser: the features of all rows, and their
// sums.
type trial struct {
	setting
	anchors []int                 // rows of the sample that are anchors, ascending
	unit    float64               // of gamma: 1, or for a linear map half of sigma
	phi     dense.Matrix[float32] // features of the sample, by row
	a       dense.Matrix[float64] // their Gram matrix; the lower triangle
	room    *heldRoom
}

// A heldRoom is the memory of trial.hold, which choosers share: fresh memory costs more time than the
// computation.
type heldRoom struct{ l, u, v []float64 }

// matrix returns a matrix of any content in memory that is grown if need be.
func (*heldRoom) matrix(memory *[]float64, rows, cols int) dense.Matrix[float64] {
	n := rows * cols
	if cap(*memory) < n {
		*memory = make([]float64, n)
	}
	return dense.Of(rows, cols, (*memory)[:n])
}

// newTrial maps the sample, which has the features of the setting, with at most anchors of its vectors as
// anchors.
func (c *chooser) newTrial(s setting, sample featured, anchors int) *trial {
	xs, moments := sample.xs, sample.moments
	t := &trial{setting: s, unit: 1, room: c.room}
	if s.kind == model.MapLinear {
		// Features of a linear map have the unit of the vectors, others have none.
		sigma, _ := moments.Sigma()
		t.unit = sigma / 2
	} else {
		n := min(anchors, c.anchors, len(xs))
		for j := range n {
			// the order of rows is random, so these are a random choice
			t.anchors = append(t.anchors, j*len(xs)/n)
		}
	}
	var at []model.Vector
	for _, row := range t.anchors {
		at = append(at, xs[row])
	}
	f := model.NewMap(s.kind, nil, s.width, moments, at)
	k, workers := f.Size(), parallel.Workers()
	t.phi = dense.Of(len(xs), k, make([]float32, len(xs)*k))
	f.ApplyAll(t.phi.Data, xs, make([]model.MapScratch, workers))
	t.a = dense.Of(k, k, make([]float64, k*k))
	dense.AddGram(t.a, t.phi, workers)
	return t
}

// leastOpen bounds from below the share of an item that its own features leave open. Less
// is rounding.
const leastOpen = 1e-6

// hold returns the held-out projections of the first n rows: each is learned without the row, and has as
// many numbers as a row of y, its targets. ok reports whether gamma has a solution.
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
// v', S_aa = |u_a|^2 and w_a = x u_a'. TestHeldOut solves each again.
func (t *trial) hold(y dense.Matrix[float32], gamma float64, n int) (held dense.Matrix[float64], ok bool) {
	k, r, workers := t.phi.Cols, y.Cols, parallel.Workers()
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
	parallel.Chunks(workers, anchors, parallel.Rows, func(_, from, to int) {
		dense.MulNT(own.Slice(from, to), u.Slice(from, to), learned)
	})
	held = dense.Of(n, r, make([]float64, n*r))
	v := t.room.matrix(&t.room.v, n, k)
	parallel.Chunks(workers, n, parallel.Rows, func(_, from, to int) {
		wide := v.Data[from*k : to*k]
		for i, value := range t.phi.Data[from*k : to*k] {
			wide[i] = float64(value)
		}
	})
	dense.CholeskyForward(v, l, workers)
	parallel.Chunks(workers, n, parallel.Rows, func(_, from, to int) {
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

// prepare returns the sample with features.
func (c *chooser) prepare(kind model.FeatureKind) featured {
	f := featured{kind, c.xs, model.NewMoments(c.modality)}
	if kind != model.FeaturesRaw {
		f.xs = slices.Clone(c.xs) // and below a copy of the numbers of each vector
		for i, x := range c.xs {
			f.xs[i].Value = slices.Clone(x.Value)
		}
		model.NewFeatures(kind, c.moments).ApplyAll(f.xs)
	}
	f.moments.Add(f.xs, parallel.Workers())
	f.moments.Settle()
	return f
}

// evaluate returns the outcome of a gamma, which has a place on the grid, by the first queries of the judge.
// It also returns the held-out projections of all rows up to the last of these. One without a solution has no
// precisions.
func (c *chooser) evaluate(t *trial, n, place int, gamma float64) (*outcome, dense.Matrix[float64]) {
	o := &outcome{place: place, Tried: Tried{FeatureMap: t.features, Map: t.kind, Width: t.width,
		Anchors: len(t.anchors), Gamma: gamma}}
	queries := c.judge.queries[:n]
	rows := len(c.xs)
	if n < len(c.judge.queries) {
		rows = int(queries[n-1]) + 1
	}
	held, ok := t.hold(c.basis.y, gamma, rows)
	if ok {
		o.precisions = c.meanPrecisions(held, queries, c.starts, c.prior)
		o.MAP, o.StdErr = rank.MeanError(o.precisions)
	}
	return o, held
}

// meanPrecisions is precisions in the mean over the first searchStarts of some starts.
func (b *bench) meanPrecisions(held dense.Matrix[float64], queries []int32, starts []*startCodes,
	prior float64) []float64 {
	starts = starts[:min(searchStarts, len(starts))]
	mean := make([]float64, len(queries))
	for _, s := range starts {
		floats.AddScaled(mean, 1/float64(len(starts)), b.precisions(held, queries, s, prior))
	}
	return mean
}

// precisions returns the average precision of queries, which are rows, under the codes of a start, with a
// prior. held has the held-out projections of each row.
func (b *bench) precisions(held dense.Matrix[float64], queries []int32, s *startCodes,
	prior float64) []float64 {
	out := make([]float64, len(queries))
	directions := b.basis.directions(s, prior)
	type room struct {
		z    []float64
		rows []float64
		code codec.Code
	}
	rooms := make([]*room, len(b.judge.scratch))
	parallel.Chunks(len(rooms), len(queries), parallel.Rows, func(worker, from, to int) {
		if rooms[worker] == nil {
			rooms[worker] = &room{make([]float64, parallel.Rows*b.q),
				make([]float64, parallel.Rows*held.Cols), codec.NewCode(b.q)}
		}
		w := rooms[worker]
		for i, row := range queries[from:to] {
			copy(w.rows[i*held.Cols:], held.Data[int(row)*held.Cols:(int(row)+1)*held.Cols])
		}
		z := w.rows
		if directions != nil {
			z = w.z
			dense.MulNT(dense.Of(to-from, b.q, z), dense.Of(to-from, held.Cols, w.rows), directions)
		}
		for i := from; i < to; i++ {
			codec.PackSigns(w.code, z[(i-from)*b.q:(i-from+1)*b.q])
			out[i] = b.judge.precision(worker, queries[i], w.code, s.codes)
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
