package methods

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// mul returns a b, scaled alpha a, minus a - b. add adds alpha a to dst, and returns it.
func mul(a, b mat.Matrix) (m *mat.Dense) { m = &mat.Dense{}; m.Mul(a, b); return m }
func scaled(alpha float64, a mat.Matrix) (m *mat.Dense) {
	m = &mat.Dense{}
	m.Scale(alpha, a)
	return m
}
func minus(a, b mat.Matrix) (m *mat.Dense) { m = &mat.Dense{}; m.Sub(a, b); return m }
func add(dst *mat.Dense, alpha float64, a *mat.Dense) *mat.Dense {
	floats.AddScaled(dst.RawMatrix().Data, alpha, a.RawMatrix().Data)
	return dst
}

// dot returns tr(a'b), square |a|^2.
func dot(a, b *mat.Dense) float64 { return floats.Dot(a.RawMatrix().Data, b.RawMatrix().Data) }
func square(a *mat.Dense) float64 { return dot(a, a) }

// apply changes every number of a, and returns it.
func apply(a *mat.Dense, f func(v float64) float64) *mat.Dense {
	for i, v := range a.RawMatrix().Data {
		a.RawMatrix().Data[i] = f(v)
	}
	return a
}

// signs returns the signs, sgn(0) = +1.
func signs(a *mat.Dense) *mat.Dense {
	return apply(mat.DenseCopyOf(a), func(v float64) float64 {
		if v >= 0 {
			return 1
		}
		return -1
	})
}

// normal returns standard normal numbers.
func normal(r *rand.Rand, rows, cols int) *mat.Dense {
	return apply(mat.NewDense(rows, cols, nil), func(float64) float64 { return r.NormFloat64() })
}

// polar returns U V' of the thin singular value decomposition U S V': of the matrices with orthonormal
// columns, or rows, the one that has the largest inner product with a.
func polar(a *mat.Dense) *mat.Dense {
	u, v := singular(a)
	return mul(u, v.T())
}

// singular returns the left and the right singular vectors as columns.
func singular(a *mat.Dense) (u, v *mat.Dense) {
	var svd mat.SVD
	u, v = &mat.Dense{}, &mat.Dense{}
	svd.Factorize(a, mat.SVDThin)
	svd.UTo(u)
	svd.VTo(v)
	return u, v
}

// symmetric returns the upper half of a + gamma I.
func symmetric(a *mat.Dense, gamma float64) *mat.SymDense {
	n, _ := a.Dims()
	s := mat.NewSymDense(n, slices.Clone(a.RawMatrix().Data))
	for i := range n {
		s.SetSym(i, i, a.At(i, i)+gamma)
	}
	return s
}

// solver returns m -> (a + gamma I)^-1 m for a symmetric a. If rounding makes it not positive definite gamma
// grows until it is.
func solver(a *mat.Dense, gamma float64) func(m mat.Matrix) *mat.Dense {
	var c mat.Cholesky
	for !c.Factorize(symmetric(a, gamma)) && !math.IsInf(gamma, 1) {
		gamma = max(10*gamma, 1e-12*(1+mat.Trace(a)))
	}
	return func(m mat.Matrix) *mat.Dense {
		x := &mat.Dense{}
		_ = c.SolveTo(x, m) // the error says that the condition is bad; the ridge bounds it
		return x
	}
}

// ridge returns y -> (phi'phi + gamma I)^-1 phi'y, which it factors once.
func ridge(phi *mat.Dense, gamma float64) func(y *mat.Dense) *mat.Dense {
	solve := solver(mul(phi.T(), phi), gamma)
	return func(y *mat.Dense) *mat.Dense { return solve(mul(phi.T(), y)) }
}

// eigen returns the eigenvalues of a symmetric matrix, the largest first, and the eigenvectors as columns.
func eigen(a *mat.Dense) (values []float64, vectors *mat.Dense) {
	var e mat.EigenSym
	var v mat.Dense
	e.Factorize(symmetric(a, 0), true)
	e.VectorsTo(&v)
	values, vectors = e.Values(nil), mat.DenseCopyOf(&v)
	slices.Reverse(values)
	for i := range values {
		slices.Reverse(vectors.RawRowView(i))
	}
	return values, vectors
}

// leading returns the first k columns, or all if there are fewer.
func leading(a *mat.Dense, k int) *mat.Dense {
	rows, cols := a.Dims()
	return mat.DenseCopyOf(a.Slice(0, rows, 0, min(cols, k)))
}

// columnMeans returns the mean of each column.
func columnMeans(a *mat.Dense) []float64 {
	n, d := a.Dims()
	means := make([]float64, d)
	for i := range n {
		floats.AddScaled(means, 1/float64(n), a.RawRowView(i))
	}
	return means
}

// centred returns a with these numbers subtracted from its columns, or a if there are none.
func centred(a *mat.Dense, means []float64) *mat.Dense {
	if means == nil {
		return a
	}
	m := mat.DenseCopyOf(a)
	for i := range m.RawMatrix().Rows {
		floats.Sub(m.RawRowView(i), means)
	}
	return m
}

// unitRows returns a with rows of length 1; rows of zeros stay.
func unitRows(a *mat.Dense) *mat.Dense {
	m := mat.DenseCopyOf(a)
	for i := range m.RawMatrix().Rows {
		floats.Scale(1/max(floats.Norm(m.RawRowView(i), 2), 1e-300), m.RawRowView(i))
	}
	return m
}

// rowsOf returns some rows.
func rowsOf(a *mat.Dense, rows []int) *mat.Dense {
	_, d := a.Dims()
	m := mat.NewDense(len(rows), d, nil)
	for to, i := range rows {
		m.SetRow(to, a.RawRowView(i))
	}
	return m
}

// distances returns |x_i - a_j|^2.
func distances(x, a *mat.Dense) *mat.Dense {
	m := mul(x, a.T())
	_, k := m.Dims()
	squares := make([]float64, k)
	for j := range squares {
		squares[j] = floats.Dot(a.RawRowView(j), a.RawRowView(j))
	}
	for i := range m.RawMatrix().Rows {
		own, row := floats.Dot(x.RawRowView(i), x.RawRowView(i)), m.RawRowView(i)
		for j := range row {
			row[j] = max(own+squares[j]-2*row[j], 0)
		}
	}
	return m
}

// A mapping maps vectors of a modality, a row each, to features. It does not change them.
type mapping func(x *mat.Dense) *mat.Dense

// linear returns the map x - mean.
func linear(x *mat.Dense, _ *rand.Rand) mapping {
	means := columnMeans(x)
	return func(x *mat.Dense) *mat.Dense { return centred(x, means) }
}

// rbf returns a maker of the map
//
//	phi(x)_j = exp(-|x - a_j|^2 / (width s)) - mean,  s = mean |x - a_j|^2,
//
// whose anchors a_j are training items, drawn at random. Width 2 is exp(-|x - a|^2 / (2 sigma^2)) with the
// sigma of most authors.
func rbf(anchors int, width float64) func(x *mat.Dense, r *rand.Rand) mapping {
	return func(x *mat.Dense, r *rand.Rand) mapping {
		n, _ := x.Dims()
		a := rowsOf(x, r.Perm(n)[:min(anchors, n)])
		scale := max(width*mat.Sum(distances(x, a))/float64(n*a.RawMatrix().Rows), 1e-300)
		kernel := func(x *mat.Dense) *mat.Dense {
			return apply(distances(x, a), func(v float64) float64 { return math.Exp(-v / scale) })
		}
		means := columnMeans(kernel(x))
		return func(x *mat.Dense) *mat.Dense { return centred(kernel(x), means) }
	}
}

// sum returns the sum of the parts.
func sum(parts []*mat.Dense) *mat.Dense {
	total := mat.DenseCopyOf(parts[0])
	for _, part := range parts[1:] {
		add(total, 1, part)
	}
	return total
}
