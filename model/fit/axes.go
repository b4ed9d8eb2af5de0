package fit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"github.com/fddhdb/fddhdb/model/internal/random"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// Constants of principal.
const (
	oversampled      = 32   // axes that are carried along beyond the requested ones
	powerSteps       = 6    // after them the spaces of the axes agree to a part of (gap)^12
	largestGram      = 2048 // most dimensions for which the covariance matrix is formed: 32 MiB
	leastAxisShare   = 1e-12
	rowsAtATime      = 512
	maxCanonicalAxes = 1024 // sum over the spaces of cca-itq, which decides the time of its eigenvalues
)

// principal returns the first r principal axes of the rows of x, which are centred, and their
// variances, descending: axes has a row of length 1 for each, and r is at most x.Cols. It is
// subspace iteration with a Rayleigh-Ritz step (Halko, Martinsson and Tropp, "Finding structure with
// randomness", SIAM Review 2011, algorithm 4.4), exact where r is near the number of dimensions.
// Axes without variance complete the others to an orthonormal set. It costs powerSteps d^2 r multiplications,
// and n d^2/2 for the covariances; if d is large, powerSteps 2 n d r.
func principal(ctx context.Context, x dense.Matrix[float32], r int,
	rng *rand.Rand) (axes dense.Matrix[float64], variances []float64, err error) {
	d, workers := x.Cols, parallel.Workers()
	b := min(d, r+oversampled)
	var gram dense.Matrix[float64]
	if d <= largestGram {
		gram = dense.Of(d, d, make([]float64, d*d))
		dense.AddGram(gram, x, workers)
		mirror(gram)
	}
	// times returns the d x b product of X'X with q, which is d x b.
	times := func(q dense.Matrix[float64]) dense.Matrix[float64] {
		product := dense.Of(d, q.Cols, make([]float64, d*q.Cols))
		right := dense.PackTransposed(q)
		if gram.Data != nil {
			parallel.Chunks(workers, d, parallel.Rows,
				func(_, from, to int) { dense.MulNT(product.Slice(from, to), gram.Slice(from, to), right) })
			return product
		}
		some := dense.Of(rowsAtATime, q.Cols, make([]float64, rowsAtATime*q.Cols))
		for first := 0; first < x.Rows; first += rowsAtATime {
			n := min(rowsAtATime, x.Rows-first)
			parallel.Chunks(workers, n, parallel.Rows, func(_, from, to int) {
				dense.MulNT(some.Slice(from, to), x.Slice(first+from, first+to), right)
			})
			dense.AddTN(product, x.Slice(first, first+n), some.Slice(0, n), workers)
		}
		return product
	}
	q := dense.Of(d, b, make([]float64, d*b))
	if b == d {
		for i := range d {
			q.Data[i*d+i] = 1
		}
	} else {
		for i := range q.Data {
			q.Data[i] = rng.NormFloat64()
		}
		orthonormalise(q)
		for range powerSteps {
			if err := ctx.Err(); err != nil {
				return axes, nil, err
			}
			q = times(q)
			orthonormalise(q)
		}
	}
	small := dense.Of(b, b, make([]float64, b*b)) // q' X'X q
	dense.AddTN(small, q, times(q), workers)
	values, vectors, err := eigen(small)
	if err != nil {
		return axes, nil, err
	}
	axes = dense.Of(r, d, make([]float64, r*d))
	leading := dense.Of(r, b, vectors.Data[:r*b])
	right := dense.Pack(q)
	parallel.Chunks(workers, r, parallel.Rows,
		func(_, from, to int) { dense.MulNT(axes.Slice(from, to), leading.Slice(from, to), right) })
	for _, v := range values[:r] {
		variances = append(variances, max(v, 0)/float64(x.Rows))
	}
	return axes, variances, nil
}

// mirror copies the lower triangle of a square matrix to the upper one.
func mirror(m dense.Matrix[float64]) {
	for i := range m.Rows {
		for j := range i {
			m.Data[j*m.Stride+i] = m.Data[i*m.Stride+j]
		}
	}
}

// eigen returns the eigenvalues of a symmetric matrix, descending, and a row for the eigenvector of
// each, whose largest component is positive. It may overwrite m.
func eigen(m dense.Matrix[float64]) (values []float64, vectors dense.Matrix[float64], err error) {
	n := m.Rows
	symmetric := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			symmetric.SetSym(j, i, (m.Data[i*m.Stride+j]+m.Data[j*m.Stride+i])/2)
		}
	}
	var e mat.EigenSym
	if !e.Factorize(symmetric, true) {
		return nil, vectors, errors.New("the eigenvalues did not converge")
	}
	ascending := e.Values(nil)
	var v mat.Dense
	e.VectorsTo(&v)
	vectors = dense.Of(n, n, make([]float64, n*n))
	for k := range n {
		values = append(values, ascending[n-1-k])
		row := vectors.Data[k*n : (k+1)*n]
		largest := 0.0
		for i := range row {
			if row[i] = v.At(i, n-1-k); math.Abs(row[i]) > math.Abs(largest) {
				largest = row[i]
			}
		}
		if largest < 0 {
			for i := range row {
				row[i] = -row[i]
			}
		}
	}
	return values, vectors, nil
}

// orthonormalise replaces the columns of q, no more than it has rows, by an orthonormal basis of a
// space that contains them (Householder).
func orthonormalise(q dense.Matrix[float64]) {
	a, tau, work := general(q.Data, q.Rows, q.Cols), make([]float64, q.Cols), make([]float64, 1)
	lapack64.Geqrf(a, tau, work, -1)
	work = make([]float64, max(int(work[0]), 1))
	lapack64.Geqrf(a, tau, work, len(work))
	query := make([]float64, 1)
	lapack64.Orgqr(a, tau, query, -1)
	if need := int(query[0]); need > len(work) {
		work = make([]float64, need)
	}
	lapack64.Orgqr(a, tau, work, len(work))
}

// randomRotation returns a random orthogonal matrix of n rows.
func randomRotation(n int, rng *rand.Rand) dense.Matrix[float64] {
	q := dense.Of(n, n, make([]float64, n*n))
	for i := range q.Data {
		q.Data[i] = rng.NormFloat64()
	}
	orthonormalise(q)
	return q
}

// itqSteps is the number of alternations, as in the paper.
const itqSteps = 50

// itq returns the rotation R, q x q, that brings the rows of V R near their signs: it minimises
// |B - V R|^2 over B in {-1,1} and orthogonal R, by turns (Gong and Lazebnik 2011, section 2.2). For
// given R, B has the signs of V R; for given B, R = U W' of the SVD V'B = U S W', which polar is. It
// starts at a random rotation. A step costs 2 n q^2 multiplications and a decomposition of q rows.
func itq(ctx context.Context, v dense.Matrix[float32], rng *rand.Rand) (dense.Matrix[float64], error) {
	n, q, workers := v.Rows, v.Cols, parallel.Workers()
	r := randomRotation(q, rng)
	z := dense.Of(rowsAtATime, q, make([]float64, rowsAtATime*q))
	b := dense.Of(rowsAtATime, q, make([]float32, rowsAtATime*q))
	for range itqSteps {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		m, right := dense.Of(q, q, make([]float64, q*q)), dense.PackTransposed(r)
		for first := 0; first < n; first += rowsAtATime {
			rows := min(rowsAtATime, n-first)
			parallel.Chunks(workers, rows, parallel.Rows, func(_, from, to int) {
				dense.MulNT(z.Slice(from, to), v.Slice(first+from, first+to), right)
				for i := from * q; i < to*q; i++ {
					b.Data[i] = 1
					if z.Data[i] < 0 {
						b.Data[i] = -1
					}
				}
			})
			dense.AddTN(m, v.Slice(first, first+rows), b.Slice(0, rows), workers)
		}
		if err := polar(r.Data, m.Data, q, q, false); err != nil {
			return r, err
		}
	}
	return r, nil
}

// turned returns R'A: the rows of A, turned by R.
func turned(r, a dense.Matrix[float64]) dense.Matrix[float64] {
	w := dense.Of(r.Cols, a.Cols, make([]float64, r.Cols*a.Cols))
	dense.AddTN(w, r, a, parallel.Workers())
	return w
}

// projected returns the products of the rows of x and the rows of a, at float32.
func projected(x dense.Matrix[float32], a dense.Matrix[float64]) dense.Matrix[float32] {
	v, right := dense.Of(x.Rows, a.Rows, make([]float32, x.Rows*a.Rows)), dense.Pack(a)
	workers := parallel.Workers()
	scratch := make([][]float64, workers)
	parallel.Chunks(workers, x.Rows, parallel.Rows, func(worker, from, to int) {
		if scratch[worker] == nil {
			scratch[worker] = make([]float64, parallel.Rows*a.Rows)
		}
		z := dense.Of(to-from, a.Rows, scratch[worker])
		dense.MulNT(z, x.Slice(from, to), right)
		for i, s := range z.Data[:(to-from)*a.Rows] {
			v.Data[from*a.Rows+i] = float32(s)
		}
	})
	return v
}

// Canonical correlation analysis of vectors in G spaces, of items that have several of them. In
// each space the vectors are centred, and projected to their first principal axes, a_g; there the
// covariance C_gg is diagonal. It looks for directions v_g along which the projections of an item in
// all spaces agree: the generalised eigenproblem
//
//	sum over h of C_gh v_h = lambda (C_gg + rho I) v_g,
//
// where C_gh sums over the items that have both (Gong, Ke, Isard and Lazebnik, "A multi-view
// embedding space for modeling internet images, tags, and their semantics", IJCV 2014, eqs. 4 and
// 5). rho keeps directions of little variance, which correlate by chance, from the top. With u_g =
// (C_gg + rho I)^(1/2) v_g it is a symmetric eigenproblem. For two spaces lambda - 1 is the canonical
// correlation; for G spaces (lambda-1)/(G-1) is the mean over pairs. Directions are scaled by it, so that
// directions of more correlation count more.
const (
	leastPairs    = 50  // items that each space must share with another one
	canonicalAxes = 512 // most principal axes of a space
	ccaRidge      = .01 // rho, as a share of the mean variance of the axes
)

// A canonical has directions in each space: by falling correlation, or by falling variance where there is one
// space and they are its principal axes.
type canonical struct {
	directions []dense.Matrix[float64] // by group: a row for each direction, scaled
	mean       dense.Matrix[float32]   // by paired item: the mean of its projections to them
}

// checkPairs refuses a sample in which some space has too few items in common with the others.
func (s *centredSample) checkPairs() error {
	G := len(s.groups)
	has := func(i, g int) bool {
		return slices.ContainsFunc(s.groups[g], func(t int) bool { return s.items[i][t].Present() })
	}
	linked := make([]int, G) // by group: the least group that it is linked with by enough items
	for g := range linked {
		linked[g] = g
	}
	need := min(leastPairs, max(2, len(s.items)/2)) // with a handful of items, all of them
	for g := range G {
		for h := range g {
			both := 0
			for i := range s.items {
				if has(i, g) && has(i, h) {
					both++
				}
			}
			if both >= need && linked[g] != linked[h] {
				from, to := max(linked[g], linked[h]), min(linked[g], linked[h])
				for k := range linked {
					if linked[k] == from {
						linked[k] = to
					}
				}
			}
		}
	}
	for g := range G {
		if linked[g] != 0 {
			return fmt.Errorf("%w: modalities %q and %q lie in spaces of their own, and hardly any item has both, nor others in between: cca-itq learns from at least %d that do. Put items that have both; or keep modalities of one space alone in a collection, for itq; or give items labels",
				ErrUnpaired, s.modalities[s.groups[0][0]].Name, s.modalities[s.groups[g][0]].Name, need)
		}
	}
	return nil
}

// correlate does the analysis.
func (s *centredSample) correlate(ctx context.Context) (*canonical, error) {
	G, workers := len(s.groups), parallel.Workers()
	most := max(1, min(canonicalAxes, maxCanonicalAxes/G))
	var axes []dense.Matrix[float64] // by group, p x d
	// by group: the projections of its items to them, divided by (variance + rho)^(1/2)
	var white []dense.Matrix[float32]
	var of [][]int  // by group: the item of each row
	var start []int // by group: its first place in the joint eigenproblem
	total := 0
	least := math.MaxInt // axes
	var own []float64    // by place: variance / (variance + rho)
	random := s.random(random.Axes)
	for _, group := range s.groups {
		x, items := s.rows(group)
		a, variances, err := principal(ctx, x, min(most, x.Cols), random)
		if err != nil {
			return nil, err
		}
		p := len(variances)
		for p > 1 && variances[p-1] <= leastAxisShare*variances[0] {
			p--
		}
		a, variances = a.Slice(0, p), variances[:p]
		rho := 0.0
		for _, v := range variances {
			rho += ccaRidge * v / float64(p)
		}
		for i, v := range variances {
			scale := 1 / math.Sqrt(v+rho)
			own = append(own, v/(v+rho))
			for j := range a.Cols {
				a.Data[i*a.Cols+j] *= scale
			}
		}
		axes, of, start = append(axes, a), append(of, items), append(start, total)
		white = append(white, projected(x, a))
		total, least = total+p, min(least, p)
	}
	joint := dense.Of(total, total, make([]float64, total*total))
	for i, v := range own {
		joint.Data[i*total+i] = v
	}
	for g := range G {
		for h := range g {
			x, y := commonRows(white[g], of[g], white[h], of[h])
			c := dense.Of(x.Cols, y.Cols, make([]float64, x.Cols*y.Cols))
			dense.AddTN(c, x, y, workers)
			for i := range c.Rows {
				for j := range c.Cols {
					v := c.Data[i*c.Cols+j] / float64(max(x.Rows, 1))
					joint.Data[(start[g]+i)*total+start[h]+j] = v
					joint.Data[(start[h]+j)*total+start[g]+i] = v
				}
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	values, vectors, err := eigen(joint)
	if err != nil {
		return nil, err
	}
	r := 0
	for r < least && values[r] > 1 {
		r++
	}
	r = max(r, 1)
	var directions []dense.Matrix[float64]
	for g, a := range axes {
		v := dense.Of(a.Rows, r, make([]float64, a.Rows*r))
		for k := range r {
			correlation := max((values[k]-1)/float64(G-1), 1e-3)
			for i := range a.Rows {
				v.Data[i*r+k] = vectors.Data[k*total+start[g]+i] * correlation
			}
		}
		w := dense.Of(r, a.Cols, make([]float64, r*a.Cols))
		dense.AddTN(w, v, a, workers)
		directions = append(directions, w)
	}
	return &canonical{directions, s.average(directions, of)}, nil
}

// average returns the mean projections to the directions of the items that are in several groups. of has the
// items of each group.
func (s *centredSample) average(directions []dense.Matrix[float64], of [][]int) dense.Matrix[float32] {
	count := make([]int, len(s.items))
	for _, items := range of {
		for _, i := range items {
			count[i]++
		}
	}
	rows, r := 0, directions[0].Rows
	place := make([]int, len(s.items))
	for i, n := range count {
		place[i] = -1
		if n > 1 {
			place[i] = rows
			rows++
		}
	}
	mean := dense.Of(rows, r, make([]float32, rows*r))
	for g, group := range s.groups {
		x, items := s.rows(group)
		z := projected(x, directions[g])
		for row, i := range items {
			if place[i] < 0 {
				continue
			}
			to := mean.Data[place[i]*r : (place[i]+1)*r]
			for k := range to {
				to[k] += z.Data[row*r+k] / float32(count[i])
			}
		}
	}
	return mean
}

// commonRows returns the rows of two matrices that are of the same items.
func commonRows(x dense.Matrix[float32], ofX []int, y dense.Matrix[float32],
	ofY []int) (a, b dense.Matrix[float32]) {
	var left, right []float32
	n := 0
	for i, j := 0, 0; i < len(ofX) && j < len(ofY); {
		switch {
		case ofX[i] < ofY[j]:
			i++
		case ofX[i] > ofY[j]:
			j++
		default:
			left = append(left, x.Data[i*x.Cols:(i+1)*x.Cols]...)
			right = append(right, y.Data[j*y.Cols:(j+1)*y.Cols]...)
			i, j, n = i+1, j+1, n+1
		}
	}
	return dense.Of(n, x.Cols, left), dense.Of(n, y.Cols, right)
}

// itq returns W of each group for codes of so many bits: its first directions, turned so that the mean
// projections of items are near their signs. Where there are more bits than directions, the others come
// from the same directions, turned at random.
func (c *canonical) itq(ctx context.Context, bits int, random *rand.Rand) ([]dense.Matrix[float64], error) {
	r := min(bits, c.mean.Cols)
	v := dense.Of(c.mean.Rows, r, make([]float32, c.mean.Rows*r))
	for i := range v.Rows {
		copy(v.Data[i*r:(i+1)*r], c.mean.Data[i*c.mean.Cols:])
	}
	turn, err := itq(ctx, v, random)
	if err != nil {
		return nil, err
	}
	w := make([]dense.Matrix[float64], len(c.directions))
	for g, d := range c.directions {
		w[g] = dense.Of(bits, d.Cols, make([]float64, bits*d.Cols))
	}
	for from := 0; from < bits; from += r {
		for g, d := range c.directions {
			copy(w[g].Data[from*d.Cols:], turned(turn, d.Slice(0, r)).Data)
		}
		turn = randomRotation(r, random)
	}
	return w, nil
}
