package fit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/aims"
	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"github.com/fddhdb/fddhdb/model/sum"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// labelSets are the distinct sets of labels of the training items. There are far fewer sets than items, so
// functions of labels alone are computed once a set. They do not change: withCentre and withEmbedding return
// others.
type labelSets struct {
	labels []uint32              // the label of each column of Y, ascending
	sets   [][]int32             // the columns of each set, ascending; in order of appearance
	counts []int                 // items that have the set
	items  int                   // training items
	setOf  func(item int) uint32 // the set of an item; where the items lie elsewhere, of sampled ones only

	embedding *embedding // nil unless there are more labels than bits
	share     float64    // of the mean that the centre takes out
	centre    []float64  // see withCentre; nil: nothing is taken out
}

// withEmbedding returns the sets with an embedding of their labels.
func (s *labelSets) withEmbedding(e *embedding) *labelSets {
	other := *s
	other.embedding = e
	return &other
}

// leastCentred is the least number of classes whose mean is removed.
const leastCentred = 5

// centres are the shares of the mean to choose from if items have several labels: the
// default, and another one.
var centres = [2]float64{.5, 0}

// several reports whether an item has several labels.
func (s *labelSets) several() bool {
	return slices.ContainsFunc(s.sets, func(set []int32) bool { return len(set) > 1 })
}

// defaultCentre returns the share of the mean that is removed unless it is chosen or given.
//
// If every item has one label it is all. A Hamming distance cannot use the common part of all classes, which
// would only take room from their differences. With fewer than 5 classes nothing is removed: too little would
// be left of their directions. Two classes would have a single direction: two codes would be equal in all
// bits, or opposite in all.
//
// If items have several labels it is half. Removing all of it costs retrieval, because the labels of an item
// are then no longer at right angles. If vectors tell little about the labels, nothing should be removed:
// projections then know best the mean, that is the frequent labels, and items with these are most often
// relevant.
func (s *labelSets) defaultCentre() float64 {
	switch {
	case s.several():
		return centres[0]
	case len(s.labels) < leastCentred:
		return 0
	}
	return 1
}

// withCentre returns the sets with another part that AimLabels removes from the vector of a label set, times
// the number of its labels: a share of the mean. If every item has one label that is the mean of all classes,
// 1/c each: C y becomes C (I - 11'/c) y with the share 1. If items have several labels it is the mean of
// their sets.
func (s *labelSets) withCentre(share float64) *labelSets {
	other := *s
	other.share, other.centre = share, nil
	if share == 0 {
		return &other
	}
	centre := make([]float64, len(s.labels))
	if !s.several() {
		for l := range centre {
			centre[l] = share / float64(len(centre))
		}
	} else {
		for i, set := range s.sets {
			for _, l := range set {
				centre[l] += share * float64(s.counts[i]) / float64(len(set)) / float64(s.items)
			}
		}
	}
	other.centre = centre
	return &other
}

// weights returns the weights of labels for an aim; see weigh. For AimWeighted the mean
// square of the weights of the training items is 1.
func (s *labelSets) weights(aim model.Aim, prior float64) []float64 {
	counts := make([]float64, len(s.labels))
	for i, set := range s.sets {
		u := float64(aims.Unit(len(set)))
		for _, l := range set {
			counts[l] += u * u * float64(s.counts[i])
		}
	}
	w := aims.Weigh(counts, prior)
	if aim != model.AimWeighted {
		return w
	}
	square := 0.0
	for i, set := range s.sets {
		x := aims.MeanWeight(set, w)
		square += float64(s.counts[i]) * x * x
	}
	floats.Scale(1/math.Sqrt(square/float64(s.items)), w)
	return w
}

// centred subtracts from each row of x, a row of q numbers a label, their common part: centre' x.
func (s *labelSets) centred(x []float64, q int) {
	if s.centre == nil {
		return
	}
	mean := make([]float64, q)
	for l, v := range s.centre {
		floats.AddScaled(mean, v, x[l*q:(l+1)*q])
	}
	for l := range s.centre {
		floats.Sub(x[l*q:(l+1)*q], mean)
	}
}

// uncentred is the transpose of centred: it subtracts from row l of x the sum of all
// rows, times centre[l].
func (s *labelSets) uncentred(x []float64, q int) {
	if s.centre == nil {
		return
	}
	sum := make([]float64, q)
	for row := range slices.Chunk(x, q) {
		floats.Add(sum, row)
	}
	for l, v := range s.centre {
		floats.AddScaled(x[l*q:(l+1)*q], -v, sum)
	}
}

// newLabelSets checks that there are labels to learn. It returns the sets, and H0 Y' with a row for each
// label.
func newLabelSets(s *sum.Sets) (*labelSets, []float64, error) {
	if s.Items == 0 {
		return nil, nil, errNoneHasLabels
	}
	if len(s.Keys) == 1 {
		return nil, nil, fmt.Errorf(
			"%w: all %d training items have the same labels, so they would all get the same code: label items of at least two kinds", model.ErrOneClass, s.Items)
	}
	labels := s.AllLabels()
	if len(labels) > s.Limit {
		return nil, nil, &BitsError{Bits: s.Bits, Labels: len(labels), Limit: s.Limit}
	}
	sets := &labelSets{labels: labels, counts: s.Counts, items: s.Items,
		setOf: func(item int) uint32 { return s.Of[item] }}
	for _, k := range s.Keys {
		sets.sets = append(sets.sets, aims.Known(nil, labels, k))
	}
	hy := make([]float64, 0, len(labels)*s.Bits)
	for _, l := range labels {
		hy = append(hy, s.Codes[l]...)
	}
	return sets, hy, nil
}

// labelsOf returns the labels of a set.
func (s *labelSets) labelsOf(set []int32) []uint32 {
	labels := make([]uint32, len(set))
	for i, l := range set {
		labels[i] = s.labels[l]
	}
	return labels
}

// A solver minimises, by alternation (Liu, Wang, Cheung 2021),
//
//	F = |H - C Y|^2 + sum_t mu_t |phi_t - R_t C Y|^2 + delta |Y|^2
//	s.t. C'C = I, R_t'R_t = I, H in {-1,1}, Y >= 1 at the labels and <= 0 elsewhere.
//
// The paper stores items as columns; here an item is a row, and so is a label. Y is n x
// c, H is n x q, phi_t is n x k. C, M_t and G_t below are the transposes of the paper's
// matrices, c x q and c x k.
//
// A sweep goes over the items once. Features enter it only through
//
//	M_t = Y phi_t'   (paper's shapes: phi_t Y', k x c)   and   G_t = R_t C,
//
// because both choices of R_t lead to G_t = polar(M_t):
//
//   - joint. For fixed H and Y, |phi - G Y|^2 with G'G = I depends on G alone, and any
//     G with orthonormal columns is R C for a feasible R (extend C and G to bases and
//     map one to the other). So C and the G_t separate: the exact minimiser over (C,
//     R_1, ..., R_T) is C = polar(H Y'), G_t = polar(M_t).
//   - paper. R_t = polar(M_t C') in the canonical form of rank c. With the SVD M_t = U
//     S W', M_t C' = U S (C W)' is an SVD too, so R_t = U W' C' = polar(M_t) C' and G_t
//     = R_t C = polar(M_t), since C'C = I. The C-step is C = polar(H Y' + sum_t mu_t
//     R_t' M_t) with R_t of the sweep before, for which R_t' M_t = C G_t' M_t. So the
//     only k x q matrix is the random first R_t.
//
// While a sweep computes a block of phi, it does the Y-step of those items and adds
// them to the M_t of the next sweep. So phi is never held. Y and H are, at c*8 + q/8
// bytes an item.
//
// labels is the limit delta -> infinity: Y stays at the labels, and F without its
// constant part is |H - C Y|^2. All items of a label set count alike, so a sweep goes
// over the distinct sets with their counts, and over no features.
//
// With AimLabels, F is |H - C J Y|^2, where J removes the common part of label sets (labelSets.withCentre).
// The step is C = polar(H (J Y)'), and codes are sgn(C J y): the codes nearest to the projections, which
// learn C J D y.
//
// joint and paper also take delta = +Inf. The steps for C and G_t do not change, the
// Y-step returns the labels, and F is without its last term, which is constant then.
// That is the paper's method without the relaxation of labels (FDDH_NR).
//
// A solver belongs to the goroutine of Train, and computes on workers goroutines.
type solver struct {
	solution           // after the last sweep
	mu       []float64 // by modality
	delta    float64
	workers  int

	y  []float64 // Y, n x c; nil for labels, whose Y is the label sets
	hy []float64 // H Y', c x q

	// By modality; empty for labels.
	maps []*model.Map
	m    [][]float64 // M_t, c x k
	g    [][]float64 // G_t, c x k
}

// A solution has the codes that a solver has found.
type solution struct {
	method    model.Method
	sets      *labelSets
	q, c      int       // bits of a code, and labels
	words     int       // words of a code
	codes     []uint64  // H: a code for each label set (labels) or item (joint, paper)
	cm        []float64 // C, c x q; C J if label sets are centred
	objective []float64 // F after each sweep
}

// operands are C and G_t, packed as right operands of products with rows of items.
type operands struct {
	c, ct *dense.Packed[float64]   // for x C', and for x C
	g, gg []*dense.Packed[float64] // for x G_t', and for x G_t G_t', which is x unless truncated
}

// newSolver prepares the first sweep. hy is H0 Y0', where Y0 are the labels; the solver changes a copy. The
// method labels needs no modalities and no maps.
func newSolver(opt Options, modalities []model.Modality, sets *labelSets, hy []float64,
	maps []*model.Map) *solver {
	c, words := len(sets.labels), codec.Words(opt.Bits)
	s := &solver{
		solution: solution{method: opt.Method, sets: sets, q: opt.Bits, c: c, words: words,
			cm: make([]float64, c*opt.Bits)},
		delta: opt.Delta, workers: parallel.Workers(), hy: slices.Clone(hy),
	}
	if opt.Method == model.MethodLabels {
		s.codes = make([]uint64, len(sets.sets)*words)
		return s
	}
	s.codes, s.maps = make([]uint64, sets.items*words), maps
	s.y = make([]float64, sets.items*c)
	for i := range sets.items {
		for _, l := range sets.sets[sets.setOf(i)] {
			s.y[i*c+int(l)] = 1
		}
	}
	for t, m := range modalities {
		s.mu = append(s.mu, opt.Mu[m.Name])
		s.m = append(s.m, make([]float64, c*maps[t].Size()))
		s.g = append(s.g, make([]float64, c*maps[t].Size()))
	}
	return s
}

// run does the sweeps, and returns what they have found. rotation returns the random start of R_t of the
// paper. If seen is not nil run calls it after each sweep.
func (s *solver) run(ctx context.Context, r *sum.Reader, sweeps int, rotation func(t, k int) []float64,
	seen func(*solver)) (*solution, error) {
	var rotations [][]float64 // for the first sweep of the paper
	if s.method == model.MethodPaper {
		for t, f := range s.maps {
			rotations = append(rotations, rotation(t, f.Size()))
		}
	}
	if s.method != model.MethodLabels {
		if err := s.gather(ctx, r); err != nil {
			return nil, err
		}
	}
	for i := range sweeps {
		name := fmt.Sprintf("sweep %d", i+1)
		right, err := s.stepC(rotations)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		rotations = nil // later ones follow from G_t
		var f float64
		if s.method == model.MethodLabels {
			f, err = s.sweepSets(ctx)
		} else {
			f, err = s.sweepItems(ctx, r, name, right)
		}
		if err != nil {
			return nil, err
		}
		s.objective = append(s.objective, f)
		if seen != nil {
			seen(s)
		}
	}
	found := s.solution // without Y and the sums, which are large
	return &found, nil
}

// stepC updates C, then every G_t, from the sums of the sweep before. rotations are the R_t of that sweep,
// unless they follow from G_t.
func (s *solver) stepC(rotations [][]float64) (right operands, err error) {
	target := s.hy
	if s.method == model.MethodPaper {
		target = append([]float64(nil), s.hy...)
		for t, f := range s.maps {
			s.addRotated(target, t, f.Size(), rotations)
		}
	}
	step := func() error {
		s.sets.uncentred(target, s.q)
		if err := polar(s.cm, target, s.c, s.q, false); err != nil {
			return err
		}
		s.sets.centred(s.cm, s.q)
		return nil
	}
	if e := s.sets.embedding; e != nil {
		step = func() error { return e.polar(s.cm, target, s.q, s.workers) }
	}
	if err := step(); err != nil {
		return right, fmt.Errorf("the step for C: %w", err)
	}
	for t, f := range s.maps {
		k := f.Size()
		// The full polar factor is feasible for joint even if M_t has lost rank. The
		// R_t of the paper is canonical, so it needs no arbitrary basis.
		if err := polar(s.g[t], s.m[t], s.c, k, s.method == model.MethodPaper); err != nil {
			return right, fmt.Errorf("the step for R of modality %d: %w", t, err)
		}
		g := dense.Of(s.c, k, s.g[t])
		packed := dense.Pack(g)
		gg := dense.Of(s.c, s.c, make([]float64, s.c*s.c))
		dense.MulNT(gg, g, packed)
		right.g, right.gg = append(right.g, packed), append(right.gg, dense.Pack(gg))
	}
	if s.method != model.MethodLabels {
		cm := dense.Of(s.c, s.q, s.cm)
		right.c, right.ct = dense.Pack(cm), dense.PackTransposed(cm)
	}
	return right, nil
}

// addRotated adds mu_t R_t' M_t to target, with R_t of the sweep before: the one of rotations, if there are
// any.
func (s *solver) addRotated(target []float64, t, k int, rotations [][]float64) {
	m, dst := general(s.m[t], s.c, k), general(target, s.c, s.q)
	if rotations != nil {
		blas64.Gemm(blas.NoTrans, blas.NoTrans, s.mu[t], m, general(rotations[t], k, s.q), 1, dst)
		return
	}
	mg := general(make([]float64, s.c*s.c), s.c, s.c)
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, m, general(s.g[t], s.c, k), 0, mg)
	blas64.Gemm(blas.NoTrans, blas.NoTrans, s.mu[t], mg, general(s.cm, s.c, s.q), 1, dst)
}

// sweepSets is the sweep of labels: H = sgn(C Y) for each label set, and its H Y'.
func (s *solver) sweepSets(ctx context.Context) (float64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	var f float64
	z := make([]float64, s.q)
	clear(s.hy)
	for i, set := range s.sets.sets {
		clear(z)
		for _, l := range set {
			floats.Add(z, s.cm[int(l)*s.q:(int(l)+1)*s.q])
		}
		code := s.codes[i*s.words : (i+1)*s.words]
		if s.sets.centre != nil {
			aims.ClearZeros(z)
		}
		codec.PackSigns(code, z)
		n := float64(s.sets.counts[i])
		for _, l := range set {
			aims.AddSigns(s.hy[int(l)*s.q:(int(l)+1)*s.q], code, n)
		}
		aims.AddSigns(z, code, -1)
		f += n * floats.Dot(z, z)
	}
	return f, nil
}

// code returns the code of item i.
func (s *solution) code(i int) codec.Code {
	if s.method == model.MethodLabels {
		i = int(s.sets.setOf(i))
	}
	return s.codes[i*s.words : (i+1)*s.words]
}

// setCode returns the code of a label set, of MethodLabels.
func (s *solution) setCode(set uint32) codec.Code {
	return s.codes[int(set)*s.words : (int(set)+1)*s.words]
}

// meanCode returns the mean of the items' codes as +-1.
func (s *solution) meanCode() []float64 {
	mean := make([]float64, s.q)
	for i := range len(s.codes) / s.words {
		count := 1.0
		if s.method == model.MethodLabels {
			count = float64(s.sets.counts[i])
		}
		aims.AddSigns(mean, s.codes[i*s.words:(i+1)*s.words], count) // exact
	}
	for j := range mean {
		mean[j] /= float64(s.sets.items)
	}
	return mean
}

// gather is the pass before the first sweep of joint and paper: it sums M_t at Y0.
func (s *solver) gather(ctx context.Context, r *sum.Reader) error {
	return r.Blocks(ctx, "features", s.maps, func(b *sum.Block) error {
		for t := range s.maps {
			s.addM(b, t)
		}
		return nil
	})
}

// rowsOfY returns the rows of Y for the items of the block.
func (s *solver) rowsOfY(b *sum.Block) dense.Matrix[float64] {
	return dense.Of(b.N, s.c, s.y[b.First*s.c:])
}

// addM adds the items of the block to M_t = Y phi_t'.
func (s *solver) addM(b *sum.Block, t int) {
	rows, k := b.Rows(t), s.maps[t].Size()
	y := s.rowsOfY(b)
	if rows < b.N { // pick the rows of Y for the rows of phi
		picked := make([]float64, 0, rows*s.c)
		for _, i := range b.At[t] {
			picked = append(picked, y.Data[i*s.c:(i+1)*s.c]...)
		}
		y = dense.Of(rows, s.c, picked)
	}
	dense.AddTN(dense.Of(s.c, k, s.m[t]), y, dense.Of(rows, k, b.Phi[t]), s.workers)
}

// sweepItems is the sweep of joint and paper. For each block it does the H-step (with Y
// of the sweep before), the Y-step, and the sums for the next sweep. It returns F at
// the new C, G, H and Y.
func (s *solver) sweepItems(ctx context.Context, r *sum.Reader, phase string,
	right operands) (float64, error) {
	clear(s.hy)
	for t := range s.m {
		clear(s.m[t])
	}
	w := &itemSweep{
		solver: s,
		right:  right,
		gphi:   make([][]float64, len(s.maps)),
		row:    make([][]int, len(s.maps)),
		h:      make([]float32, sum.BlockItems*s.q),
		f:      make([]float64, sum.BlockItems),
		work:   make([]sweepScratch, s.workers),
	}
	for t := range s.maps {
		w.gphi[t] = make([]float64, sum.BlockItems*s.c)
		w.row[t] = make([]int, sum.BlockItems)
	}
	for i := range w.work {
		w.work[i] = sweepScratch{z: make([]float64, sweepRows*s.q), y: make([]float64, sweepRows*s.c)}
	}
	var f float64
	err := r.Blocks(ctx, phase, s.maps, func(b *sum.Block) error {
		w.block(b)
		for _, v := range w.f[:b.N] { // not floats.Sum, whose order depends on the address
			f += v
		}
		return nil
	})
	return f, err
}

// sweepRows is the number of items that one goroutine takes at a time.
const sweepRows = 64

// itemSweep is the memory of one sweep over the items.
type itemSweep struct {
	*solver
	right operands
	gphi  [][]float64    // by modality: phi_t G_t, a row of c for each row of the block
	row   [][]int        // by modality and item of the block: its row, or -1
	h     []float32      // H of the block as +-1
	f     []float64      // by item: its part of F
	work  []sweepScratch // by goroutine
}

// sweepScratch is the memory of one goroutine: rows of q and of c.
type sweepScratch struct{ z, y []float64 }

// block does the sweep of a block: phi G of its rows, the steps of its items, and the sums
// H Y' and M_t of the next sweep, which need the new Y.
func (w *itemSweep) block(b *sum.Block) {
	for t, f := range w.maps {
		row, rows := w.row[t], b.Rows(t)
		for i := range row {
			row[i] = -1
		}
		for r, i := range b.At[t] {
			row[i] = r
		}
		phi, gphi := dense.Of(rows, f.Size(), b.Phi[t]), dense.Of(rows, w.c, w.gphi[t])
		parallel.Chunks(w.workers, rows, sweepRows, func(_, from, to int) {
			dense.MulNT(gphi.Slice(from, to), phi.Slice(from, to), w.right.g[t])
		})
	}
	parallel.Chunks(w.workers, b.N, sweepRows, func(worker, from, to int) {
		w.items(b, from, to, &w.work[worker])
	})
	h := dense.Of(b.N, w.q, w.h)
	dense.AddTN(dense.Of(w.c, w.q, w.hy), w.rowsOfY(b), h, w.workers)
	for t := range w.maps {
		w.addM(b, t)
	}
}

// items does the H-step and the Y-step of some items of the block, and computes their
// parts of F.
//
// For fixed C, G and H the problem separates by items, and with C'C = G'G = I by
// labels. With w = 1 + sum mu + delta,
//
//	|h - C y|^2 + sum mu |phi - G y|^2 + delta |y|^2 = w |y - v|^2 + constant,
//	v = (C'h + sum mu G'phi) / w.
//
// So clamping v to the feasible side is exact (the eps-dragging). The sums go over the
// modalities of the item. With delta = +Inf v is 0 and y is the labels.
func (w *itemSweep) items(b *sum.Block, from, to int, work *sweepScratch) {
	n, first := to-from, b.First+from
	y, h := w.rowsOfY(b).Slice(from, to), dense.Of(b.N, w.q, w.h).Slice(from, to)
	z, target := dense.Of(n, w.q, work.z), dense.Of(n, w.c, work.y)
	row := func(m dense.Matrix[float64], i int) []float64 { return m.Data[i*m.Cols : (i+1)*m.Cols] }

	dense.MulNT(z, y, w.right.ct)
	for i := range n {
		item := first + i
		code := codec.PackSigns(w.codes[item*w.words:(item+1)*w.words], row(z, i))
		aims.Signs(h.Data[i*w.q:(i+1)*w.q], code)
	}

	dense.MulNT(target, h, w.right.c)
	for i := range n {
		target, y := row(target, i), row(y, i)
		weight := 1 + w.delta
		for t := range w.maps {
			if r := w.row[t][from+i]; r >= 0 {
				weight += w.mu[t]
				floats.AddScaled(target, w.mu[t], w.gphi[t][r*w.c:(r+1)*w.c])
			}
		}
		set := w.sets.sets[w.sets.setOf(first+i)]
		for l, v := range target {
			v /= weight
			if len(set) > 0 && int(set[0]) == l {
				y[l] = max(v, 1)
				set = set[1:]
			} else {
				y[l] = min(v, 0)
			}
		}
	}

	dense.MulNT(z, y, w.right.ct)
	delta := w.delta
	if math.IsInf(delta, 1) { // the part of delta is constant
		delta = 0
	}
	for i := range n {
		var f float64
		for j, v := range h.Data[i*w.q : (i+1)*w.q] {
			d := row(z, i)[j] - float64(v)
			f += d * d
		}
		w.f[from+i] = f + delta*floats.Dot(row(y, i), row(y, i))
	}
	ggy := target // G'G y, in the memory of target, which is done with
	for t, f := range w.maps {
		dense.MulNT(ggy, y, w.right.gg[t])
		k := f.Size()
		for i := range n {
			if r := w.row[t][from+i]; r >= 0 {
				// phi - G y|^2, without another pass over the k features.
				phi := dense.SquaredNorm(b.Phi[t][r*k : (r+1)*k])
				gphi := w.gphi[t][r*w.c : (r+1)*w.c]
				w.f[from+i] += w.mu[t] * (phi - 2*floats.Dot(gphi, row(y, i)) +
					floats.Dot(row(ggy, i), row(y, i)))
			}
		}
	}
}

// rankTolerance is the share of the largest singular value below which one counts as
// zero.
const rankTolerance = 1e-10

// polar writes to dst the polar factor U V' of the thin SVD M = U S V', where m is M,
// row-major, rows x cols, with rows <= cols.
//
// Among all X with orthonormal rows the polar factor maximises tr(X M'). That is the
// step of every solver: since |X'B| = |B|, min |A - X'B|^2 over such X is max tr(X A
// B') (the orthogonal Procrustes problem). If a singular value is 0 any choice of its
// singular vectors gives the same maximum. With truncate, directions without a singular
// value are left out: the result is the canonical partial isometry, which does not
// depend on the SVD routine.
//
// dst and m may be the same slice.
func polar(dst, m []float64, rows, cols int, truncate bool) error {
	var svd mat.SVD
	if !svd.Factorize(mat.NewDense(rows, cols, m), mat.SVDThin) {
		return errors.New("the singular value decomposition did not converge")
	}
	rank := rows
	if truncate {
		s := svd.Values(nil)
		rank = 0
		for rank < len(s) && s[rank] > rankTolerance*s[0] {
			rank++
		}
	}
	clear(dst)
	if rank == 0 {
		return nil
	}
	var u, v mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	ur, vr := u.RawMatrix(), v.RawMatrix()
	ur.Cols, vr.Cols = rank, rank
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, ur, vr, 0, general(dst, rows, cols))
	return nil
}

// general returns data, without gaps, as a row-major matrix.
func general(data []float64, rows, cols int) blas64.General {
	return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: data}
}
