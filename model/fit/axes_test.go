package fit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/model/internal/dense"
	"gonum.org/v1/gonum/mat"
)

// Axes are orthonormal, and hold nearly as much variance as the leading eigenvectors of the covariance,
// which gonum finds: exactly as much where there are few dimensions. Also where there are fewer rows
// than axes, and where the covariance is not formed.
func TestPrincipal(t *testing.T) {
	effort.LongWithRace(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		n, d, r int
		least   float64 // share of the variance of the eigenvectors
	}{{200, 12, 5, 1 - 1e-9}, {300, 200, 20, 1 - 1e-3}, {10, 30, 20, 1 - 1e-9},
		{60, largestGram + 50, 16, 1 - 1e-3}} {
		x := dense.Of(c.n, c.d, make([]float32, c.n*c.d))
		for i := range c.n {
			for j := range c.d {
				x.Data[i*c.d+j] = float32(rng.NormFloat64() / (1 + float64(j)/8))
			}
		}
		axes, variances, err := principal(t.Context(), x, c.r, rng)
		if err != nil || axes.Rows != c.r || len(variances) != c.r ||
			!slices.IsSortedFunc(variances, func(a, b float64) int { return int(math.Copysign(1, b-a)) }) {
			t.Fatalf("%+v: %d axes, variances %v, %v", c, axes.Rows, variances, err)
		}
		failIf(t, !orthonormal(mat.NewDense(c.r, c.d, axes.Data)), "%+v: the axes are not orthonormal", c)
		held := 0.0
		for i := range c.r {
			variance := 0.0
			for row := range c.n {
				z := 0.0
				for k := range c.d {
					z += axes.Data[i*c.d+k] * float64(x.Data[row*c.d+k])
				}
				variance += z * z / float64(c.n)
			}
			failIf(t, math.Abs(variance-variances[i]) > 1e-6*variances[0],
				"%+v: axis %d has the variance %g, not %g", c, i, variance, variances[i])
			held += variance
		}
		// The eigenvalues of X X', of n rows, are those of X'X.
		gram := mat.NewSymDense(c.n, nil)
		for i := range c.n {
			for j := range i + 1 {
				dot := 0.0
				for k := range c.d {
					dot += float64(x.Data[i*c.d+k]) * float64(x.Data[j*c.d+k])
				}
				gram.SetSym(j, i, dot)
			}
		}
		var e mat.EigenSym
		stopIf(t, !e.Factorize(gram, false), "gonum")
		values, most := e.Values(nil), 0.0
		for i := range min(c.r, c.n) {
			most += max(values[c.n-1-i], 0) / float64(c.n)
		}
		failIf(t, held < c.least*most, "%+v: the axes hold %.6f of the variance of the eigenvectors", c,
			held/most)
	}
}

// The rotation of ITQ is orthogonal, and brings vectors nearer to their signs than a random one.
func TestITQNearsSigns(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const n, q = 500, 12
	v := dense.Of(n, q, make([]float32, n*q))
	for i := range v.Data {
		v.Data[i] = float32(math.Copysign(1+rng.NormFloat64()/4, rng.NormFloat64()))
	}
	turn := randomRotation(q, rng)
	hidden := projected(v, turn) // signs that are turned away
	r := need(itq(t.Context(), hidden, rng))(t)
	loss := func(r dense.Matrix[float64]) (sum float64) {
		for i := range n {
			for j := range q {
				z := 0.0
				for k := range q {
					z += float64(hidden.Data[i*q+k]) * r.Data[k*q+j]
				}
				sum += (math.Abs(z) - 1) * (math.Abs(z) - 1)
			}
		}
		return sum / n / q
	}
	got, random := loss(r), loss(randomRotation(q, rng))
	failIf(t, got > random/2, "the loss is %.4f, that of a random rotation %.4f", got, random)
	failIf(t, !orthonormal(mat.NewDense(q, q, r.Data)), "the rotation is not orthogonal")
}
