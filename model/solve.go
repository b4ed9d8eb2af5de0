package model

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

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
// With AimLabels, F is |H - C J Y|^2, where J takes out what label sets share
// (labelSets.setCentre). The step is C = polar(H (J Y)'), and codes are sgn(C J y): those
// that projections, which learn C J D y, come nearest to.
//
// joint and paper also take delta = +Inf. The steps for C and G_t do not change, the
// Y-step returns the labels, and F is without its last term, which is constant then.
// That is the paper's method without the relaxation of labels (FDDH_NR).
//
// A solver belongs to the goroutine of Train, and computes on workers goroutines.
type solver struct {
	method  Method
	q, c    int // bits of a code, and labels
	sets    *labelSets
	mu      []float64 // by modality
	delta   float64
	workers int

	words int       // words of a code
	codes []uint64  // H: a code for each label set (labels) or item (joint, paper)
	y     []float64 // Y, n x c; nil for labels, whose Y is the label sets
	cm    []float64 // C, c x q; C J if label sets are centred
	hy    []float64 // H Y', c x q

	// By modality; empty for labels.
	maps []*featureMap
	m    [][]float64 // M_t, c x k
	g    [][]float64 // G_t, c x k
	r0   [][]float64 // k x q, for the first sweep of paper; nil after it

	// C and G_t, packed as right operands of products with rows of items.
	right struct {
		c, ct *dense.Packed[float64]   // for x C', and for x C
		g, gg []*dense.Packed[float64] // for x G_t', and for x G_t G_t', which is x unless truncated
	}
}

// newSolver prepares the first sweep. hy is H0 Y0', where Y0 are the labels.
func newSolver(opt Options, modalities []Modality, sets *labelSets, hy []float64) *solver {
	s := &solver{
		method: opt.Method, q: opt.Bits, c: len(sets.labels), sets: sets,
		delta: opt.Delta, workers: workerCount(),
		words: codec.Words(opt.Bits), hy: hy,
	}
	s.cm = make([]float64, s.c*s.q)
	if s.method == MethodLabels {
		s.codes = make([]uint64, len(sets.sets)*s.words)
		return s
	}
	s.codes = make([]uint64, sets.items*s.words)
	s.y = make([]float64, sets.items*s.c)
	for i := range sets.items {
		for _, l := range sets.sets[sets.setOf(i)] {
			s.y[i*s.c+int(l)] = 1
		}
	}
	for _, m := range modalities {
		s.mu = append(s.mu, opt.Mu[m.Name])
	}
	return s
}

// useMaps gives the solver the feature maps. r0 returns the random start of R_t.
func (s *solver) useMaps(maps []*featureMap, r0 func(t, k int) []float64) {
	s.maps = maps
	s.right.g = make([]*dense.Packed[float64], len(maps))
	s.right.gg = make([]*dense.Packed[float64], len(maps))
	for t, f := range maps {
		k := f.size()
		s.m = append(s.m, make([]float64, s.c*k))
		s.g = append(s.g, make([]float64, s.c*k))
		if s.method == MethodPaper {
			s.r0 = append(s.r0, r0(t, k))
		}
	}
}

// run does the sweeps and returns F after each of them. If seen is not nil run calls it
// after each sweep.
func (s *solver) run(ctx context.Context, r *reader, sweeps int, seen func(*solver)) ([]float64, error) {
	sweep := s.sweepSets
	if s.method != MethodLabels {
		sweep = func(ctx context.Context, name string) (float64, error) { return s.sweepItems(ctx, r, name) }
		if err := s.gather(ctx, r); err != nil {
			return nil, err
		}
	}
	var objective []float64
	for i := range sweeps {
		if err := s.stepC(); err != nil {
			return nil, fmt.Errorf("sweep %d: %w", i+1, err)
		}
		f, err := sweep(ctx, fmt.Sprintf("sweep %d", i+1))
		if err != nil {
			return nil, err
		}
		objective = append(objective, f)
		if seen != nil {
			seen(s)
		}
	}
	return objective, nil
}

// stepC updates C, then every G_t, from the sums of the sweep before.
func (s *solver) stepC() error {
	target := s.hy
	if s.method == MethodPaper {
		target = append([]float64(nil), s.hy...)
		for t, f := range s.maps {
			s.addRotated(target, t, f.size())
		}
		s.r0 = nil
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
		return fmt.Errorf("the step for C: %w", err)
	}
	for t, f := range s.maps {
		k := f.size()
		// The full polar factor is feasible for joint even if M_t has lost rank. The
		// R_t of the paper is canonical, so it needs no arbitrary basis.
		if err := polar(s.g[t], s.m[t], s.c, k, s.method == MethodPaper); err != nil {
			return fmt.Errorf("the step for R of modality %d: %w", t, err)
		}
		g := dense.Of(s.c, k, s.g[t])
		s.right.g[t] = dense.Pack(g)
		gg := dense.Of(s.c, s.c, make([]float64, s.c*s.c))
		dense.MulNT(gg, g, s.right.g[t])
		s.right.gg[t] = dense.Pack(gg)
	}
	if s.method != MethodLabels {
		cm := dense.Of(s.c, s.q, s.cm)
		s.right.c, s.right.ct = dense.Pack(cm), dense.PackTransposed(cm)
	}
	return nil
}

// addRotated adds mu_t R_t' M_t to target, with R_t of the sweep before.
func (s *solver) addRotated(target []float64, t, k int) {
	m, dst := general(s.m[t], s.c, k), general(target, s.c, s.q)
	if s.r0 != nil {
		blas64.Gemm(blas.NoTrans, blas.NoTrans, s.mu[t], m, general(s.r0[t], k, s.q), 1, dst)
		return
	}
	mg := general(make([]float64, s.c*s.c), s.c, s.c)
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, m, general(s.g[t], s.c, k), 0, mg)
	blas64.Gemm(blas.NoTrans, blas.NoTrans, s.mu[t], mg, general(s.cm, s.c, s.q), 1, dst)
}

// sweepSets is the sweep of labels: H = sgn(C Y) for each label set, and its H Y'.
func (s *solver) sweepSets(ctx context.Context, _ string) (float64, error) {
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
			clearZeros(z)
		}
		codec.PackSigns(code, z)
		n := float64(s.sets.counts[i])
		for _, l := range set {
			addSigns(s.hy[int(l)*s.q:(int(l)+1)*s.q], code, n)
		}
		addSigns(z, code, -1)
		f += n * floats.Dot(z, z)
	}
	return f, nil
}

// code returns the code of item i after the last sweep.
func (s *solver) code(i int) codec.Code {
	if s.method == MethodLabels {
		i = int(s.sets.setOf(i))
	}
	return s.codes[i*s.words : (i+1)*s.words]
}

// setCode returns the code of a label set after the last sweep of MethodLabels.
func (s *solver) setCode(set uint32) codec.Code {
	return s.codes[int(set)*s.words : (int(set)+1)*s.words]
}

// meanCode returns the mean of the items' codes as +-1.
func (s *solver) meanCode() []float64 {
	mean := make([]float64, s.q)
	for i := range len(s.codes) / s.words {
		count := 1.0
		if s.method == MethodLabels {
			count = float64(s.sets.counts[i])
		}
		addSigns(mean, s.codes[i*s.words:(i+1)*s.words], count) // exact
	}
	for j := range mean {
		mean[j] /= float64(s.sets.items)
	}
	return mean
}
