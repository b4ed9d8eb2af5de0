package dense

import (
	"fmt"
	"math"
	"unsafe"
)

// Float is the type of the elements of a matrix.
type Float interface{ float32 | float64 }

// A Matrix is a row-major matrix: element (i, j) is Data[i*Stride+j]. Stride is at
// least Cols, and Data reaches at least to the last element. A matrix without rows or
// columns needs no data.
type Matrix[T Float] struct {
	Rows, Cols, Stride int
	Data               []T
}

// Of returns data as a matrix of rows x cols without gaps between the rows.
func Of[T Float](rows, cols int, data []T) Matrix[T] {
	return Matrix[T]{Rows: rows, Cols: cols, Stride: cols, Data: data}
}

// Slice returns rows from <= i < to of m. The result aliases m.
func (m Matrix[T]) Slice(from, to int) Matrix[T] {
	if from < 0 || to < from || to > m.Rows {
		panic(fmt.Sprintf("dense: rows %d to %d of %d", from, to, m.Rows))
	}
	m.Rows = to - from
	if m.Rows > 0 && m.Cols > 0 {
		m.Data = m.Data[from*m.Stride:]
	}
	return m
}

// columns returns columns from <= j < to of m. The result aliases m.
func (m Matrix[T]) columns(from, to int) Matrix[T] {
	if m.Rows > 0 && from < m.Cols {
		m.Data = m.Data[from:]
	}
	m.Cols = to - from
	return m
}

func (m Matrix[T]) row(i int) []T {
	if m.Cols == 0 {
		return nil
	}
	return m.Data[i*m.Stride:][:m.Cols]
}

// check panics if numbers of the matrix are missing from its data. The kernels in
// assembly depend on it.
func (m Matrix[T]) check(name string) {
	if m.Rows < 0 || m.Cols < 0 || m.Stride < m.Cols {
		panic(fmt.Sprintf("dense: %s is %d x %d with a stride of %d", name, m.Rows, m.Cols, m.Stride))
	}
	if m.Rows == 0 || m.Cols == 0 {
		return
	}
	if len(m.Data) < m.Cols || m.Rows-1 > (len(m.Data)-m.Cols)/m.Stride {
		panic(fmt.Sprintf("dense: %s is %d x %d with a stride of %d, but has %d numbers", name, m.Rows,
			m.Cols, m.Stride, len(m.Data)))
	}
}

// aligned returns n zeros that start at a line of the cache.
func aligned[T Float](n int) []T {
	line := cacheLine / size[T]()
	x := make([]T, n+line)
	skip := -int(uintptr(unsafe.Pointer(&x[0]))/uintptr(size[T]())) & (line - 1)
	return x[skip : skip+n : skip+n]
}

// SquaredNorm returns |x|^2, summed in float64.
func SquaredNorm(x []float32) float64 {
	var s0, s1, s2, s3 float64
	for len(x) >= 4 {
		a, b, c, d := float64(x[0]), float64(x[1]), float64(x[2]), float64(x[3])
		s0 += a * a
		s1 += b * b
		s2 += c * c
		s3 += d * d
		x = x[4:]
	}
	for _, v := range x {
		s0 += float64(v) * float64(v)
	}
	return (s0 + s1) + (s2 + s3)
}

// A Sparse is a matrix that stores only its nonzero elements (compressed sparse rows).
// Row i has Value[e] in column Index[e] for Start[i] <= e < Start[i+1]. Start has
// Rows+1 ascending elements. Columns of a row may come in any order, and a column that
// comes twice is summed.
type Sparse struct {
	Rows, Cols int
	Start      []int
	Index      []uint32
	Value      []float32
}

// check panics if the slices do not make up a matrix. The kernels in assembly depend on
// it.
func (m Sparse) check() {
	if m.Rows < 0 || m.Cols < 0 || len(m.Start) < m.Rows+1 || len(m.Index) != len(m.Value) {
		panic(fmt.Sprintf("dense: a sparse matrix of %d x %d with %d starts, %d columns and %d values",
			m.Rows, m.Cols, len(m.Start), len(m.Index), len(m.Value)))
	}
	last := 0
	for i, s := range m.Start[:m.Rows+1] {
		if s < last || s > len(m.Index) {
			panic(fmt.Sprintf("dense: row %d of a sparse matrix starts at %d, after %d, of %d elements", i, s,
				last, len(m.Index)))
		}
		last = s
	}
	for e, j := range m.Index[m.Start[0]:last] {
		if int(j) >= m.Cols {
			panic(fmt.Sprintf("dense: element %d of a sparse matrix is in column %d of %d", e, j, m.Cols))
		}
	}
}

// SparseMulNT is MulNT for a sparse left operand. If the columns of each row ascend and
// b is finite, the result is that of MulNT for the same matrix, to the last bit. A row
// costs as many multiplications as it has elements, times the rows of b.
func SparseMulNT(c Matrix[float32], a Sparse, b *Packed[float32]) {
	a.check()
	c.check("the product")
	if a.Cols != b.cols || c.Rows != a.Rows || c.Cols != b.rows {
		panic(fmt.Sprintf("dense: the product of %d x %d and the transpose of %d x %d is not %d x %d",
			a.Rows, a.Cols, b.rows, b.cols, c.Rows, c.Cols))
	}
	if c.Rows == 0 || c.Cols == 0 {
		return
	}
	s := borrow[float32]()
	defer giveBack(s)
	w, panel := panelWidth[float32](), b.panelSize()
	// Take two panels at a time, which stay in the cache for all rows.
	for j := 0; j < c.Cols; {
		panels := 1
		if j+2*w <= c.Cols {
			panels = 2
		}
		for i := range c.Rows {
			from, to := a.Start[i], a.Start[i+1]
			dst := c.row(i)[j:min(j+panels*w, c.Cols)]
			if from == to {
				clear(dst)
				continue
			}
			out := dst
			if len(out) < w {
				out = s.edge[:w]
			}
			_ = out[panels*w-1]
			sparseBy(active, a.Index[from:to], a.Value[from:to], unsafe.Pointer(&b.data[j/w*panel]), panel*4,
				panels, unsafe.Pointer(&out[0]))
			if len(dst) < w {
				copy(dst, out)
			}
		}
		j += panels * w
	}
}

// expZero is the exponent below which Gaussian is 0. e^-87.33 is the least number that
// float32 holds with all its digits, and arithmetic with smaller ones is slow.
const expZero = -87.33

// Gaussian writes the Gaussian kernel of a vector x and n vectors y_j to dst,
//
//	dst[j] = exp(-gamma max(0, |x|^2 + |y_j|^2 - 2 x.y_j)),
//
// from norm = |x|^2, norms[j] = |y_j|^2 and dots[j] = x.y_j. gamma is finite and
// positive. dots and norms must be as long as dst; dst may be dots. The difference
// loses digits if the norms are much larger than it: centre the vectors. The
// exponential is within 2 ulp. It is 0 where it would be less than e^-87.33 = 1.2e-38,
// and so for infinite distances. NaNs propagate.
//
// An element depends on its own norm and dot alone, not on its position or the length.
func Gaussian(dst, dots []float32, norm float32, norms []float32, gamma float32) {
	if len(dots) != len(dst) || len(norms) != len(dst) {
		panic(fmt.Sprintf("dense: %d dots and %d norms for %d kernels", len(dots), len(norms), len(dst)))
	}
	if len(dst) > 0 {
		gaussianBy(active, dst, dots, norm, norms, gamma)
	}
}

func gaussianGeneric(dst, dots []float32, norm float32, norms []float32, gamma float32) {
	for j, dot := range dots {
		// A builtin max keeps NaN; 2*dot is exact, so it does not matter whether the
		// compiler fuses the subtraction.
		d := max(0, norm+norms[j]-2*dot)
		dst[j] = exp(-gamma * d)
	}
}

// exp returns e^t for t <= 0, by the instructions of gaussian_amd64.h.
func exp(t float32) float32 {
	const high, low = 0x1.63p-1, -0x1.bd0106p-13 // ln 2 is their sum
	switch {
	case t < expZero:
		return 0
	case t != t:
		return t
	}
	n := float32(math.RoundToEven(float64(float32(t * 0x1.715476p+0)))) // 1 / ln 2
	r := fma32(-low, n, fma32(-high, n, t))
	p := float32(1.9875691500e-4)
	for _, c := range [...]float32{1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, .5} {
		p = fma32(p, r, c)
	}
	p = fma32(float32(p*r), r, r) + 1
	return math.Float32frombits(math.Float32bits(p) + uint32(int32(n))<<23)
}
