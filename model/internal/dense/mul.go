package dense

import (
	"fmt"
	"math"
	"sync"
	"unsafe"
)

const (
	// fewRows is the largest number of rows that are multiplied one by one. Each reads
	// all of b from the cache, but a tile that uses fewer rows wastes more.
	fewRows = 3

	// blockRows x depthBy(active) numbers of a are copied, and stay in the second cache
	// while they are multiplied with all panels. blockRows is a multiple of the height
	// of tiles.
	blockRows = 128

	cacheLine = 64
)

// MulNT writes the product of a and the transpose of the matrix b was packed from to c.
// With a of m x d and b of n x d, c is m x n and
//
//	c[i][j] = a[i][0] b[j][0] + a[i][1] b[j][1] + ... + a[i][d-1] b[j][d-1]
//
// in the precision of c, to which the numbers of a are converted. The products are
// added in this order wherever the element is in c, so a row has the same result, to
// the last bit, alone and among others. MulNT uses one goroutine; a caller with several
// cuts a and c into rows as it likes. Rows cost least by the hundred. Up to three rows
// cost most: each reads all of b. c must not overlap with a. MulNT keeps neither.
func MulNT[T, S Float](c Matrix[T], a Matrix[S], b *Packed[T]) {
	a.check("the left operand")
	c.check("the product")
	if a.Cols != b.cols || c.Rows != a.Rows || c.Cols != b.rows {
		panic(fmt.Sprintf("dense: the product of %d x %d and the transpose of %d x %d is not %d x %d",
			a.Rows, a.Cols, b.rows, b.cols, c.Rows, c.Cols))
	}
	if c.Rows == 0 || c.Cols == 0 {
		return
	}
	if b.cols == 0 {
		for i := range c.Rows {
			clear(c.row(i))
		}
		return
	}
	s := borrow[T]()
	defer giveBack(s)
	tiled := c.Rows
	if last := c.Rows % tileRows; last <= fewRows {
		tiled -= last
	}
	for i := 0; i < tiled; i += blockRows {
		end := min(i+blockRows, tiled)
		mulBlock(c.Slice(i, end), a.Slice(i, end), b, s, false)
	}
	for i := tiled; i < c.Rows; i++ {
		mulRow(c.row(i), a.row(i), b, s)
	}
}

// addNT adds the product of a and the transpose of the matrix b was packed from to c,
// with the additions in the order of MulNT.
func addNT(c, a Matrix[float64], b *Packed[float64]) {
	s := borrow[float64]()
	defer giveBack(s)
	for i := 0; i < c.Rows; i += blockRows {
		end := min(i+blockRows, c.Rows)
		mulBlock(c.Slice(i, end), a.Slice(i, end), b, s, true)
	}
}

// mulBlock is MulNT for at most blockRows rows, or adds the product to c.
func mulBlock[T, S Float](c Matrix[T], a Matrix[S], b *Packed[T], s *scratch[T], add bool) {
	w, bytes, maxDepth := panelWidth[T](), size[T](), depthBy(active)
	if b.cols == 0 {
		return
	}
	chunks := (b.cols + maxDepth - 1) / maxDepth
	depth := (b.cols + chunks - 1) / chunks
	// A row of the copy takes an odd number of lines of the cache, so that the rows of
	// a tile are in different sets of the first cache.
	line := cacheLine / bytes
	stride := ((depth+line-1)/line | 1) * line
	t := tile{row: stride * bytes, col: bytes}
	for p := 0; p < b.cols; p += depth {
		t.n, t.first = min(depth, b.cols-p), p == 0 && !add
		for i := range a.Rows {
			convert(s.a[i*stride:][:t.n], a.row(i)[p:p+t.n])
		}
		for j := 0; j < b.rows; j += w {
			t.b = unsafe.Pointer(&b.data[j*b.cols+p*w])
			for i := 0; i < a.Rows; i += tileRows {
				t.a = unsafe.Pointer(&s.a[i*stride])
				s.multiply(&t, c, i, j)
			}
		}
	}
}

// mulRow is MulNT for one row.
func mulRow[T, S Float](c []T, a []S, b *Packed[T], s *scratch[T]) {
	x, ok := any(a).([]T)
	if !ok {
		s.grow(len(a))
		x = s.a[:len(a)]
		convert(x, a)
	}
	w, panel := panelWidth[T](), b.panelSize()
	whole := len(c) / w
	if whole > 0 {
		row(x, b.data, whole, c)
	}
	if rest := len(c) - whole*w; rest > 0 {
		row(x, b.data[whole*panel:], 1, s.edge[:w])
		copy(c[whole*w:], s.edge[:rest])
	}
}

// row multiplies x with whole panels, each of len(x) x panelWidth.
func row[T Float](x, b []T, panels int, c []T) {
	w := panelWidth[T]()
	_, _ = b[panels*w*len(x)-1], c[panels*w-1]
	rowBy(active, size[T](), len(x), unsafe.Pointer(&x[0]), unsafe.Pointer(&b[0]), panels,
		unsafe.Pointer(&c[0]))
}

// convert copies src to dst, which has the same length.
func convert[T, S Float](dst []T, src []S) {
	if same, ok := any(src).([]T); ok {
		copy(dst, same)
		return
	}
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = T(v)
	}
}

// A scratch is the memory of one product while it is computed.
type scratch[T Float] struct {
	a    []T // copied numbers of the left operand
	edge []T // a tile
}

var scratches32, scratches64 sync.Pool

// borrow takes a scratch from the pool of its type; giveBack returns it.
func borrow[T Float]() *scratch[T] {
	pool := &scratches64
	if size[T]() == 4 {
		pool = &scratches32
	}
	if s, ok := pool.Get().(*scratch[T]); ok {
		return s
	}
	return &scratch[T]{
		a:    aligned[T](blockRows * (deepest + cacheLine/size[T]())),
		edge: aligned[T](tileRows * panelWidth[T]()),
	}
}

func giveBack[T Float](s *scratch[T]) {
	if size[T]() == 4 {
		scratches32.Put(s)
	} else {
		scratches64.Put(s)
	}
}

// grow makes room for n numbers in s.a.
func (s *scratch[T]) grow(n int) {
	if len(s.a) < n {
		s.a = aligned[T](n)
	}
}

// multiply computes the tile whose first element is (i, j) of c. If c ends within the
// tile it goes by way of s.edge.
func (s *scratch[T]) multiply(t *tile, c Matrix[T], i, j int) {
	w, bytes := panelWidth[T](), size[T]()
	if i+tileRows <= c.Rows && j+w <= c.Cols {
		t.c, t.stride = unsafe.Pointer(&c.Data[i*c.Stride+j]), c.Stride*bytes
		tileBy(active, bytes, t)
		return
	}
	t.c, t.stride = unsafe.Pointer(&s.edge[0]), w*bytes
	rows, cols := min(tileRows, c.Rows-i), min(w, c.Cols-j)
	if !t.first {
		for r := range rows {
			copy(s.edge[r*w:][:cols], c.Data[(i+r)*c.Stride+j:])
		}
	}
	tileBy(active, bytes, t)
	for r := range rows {
		copy(c.Data[(i+r)*c.Stride+j:][:cols], s.edge[r*w:])
	}
}

// A Packed is the right operand of a product, in the order in which the kernels read
// it. It is immutable; goroutines may share it.
//
// The rows of the original matrix are cut into panels as wide as a tile. A panel holds
// element p of its rows for each column p in turn: element (j, p) is data[j/w*cols*w +
// p*w + j%w] for a width w. The last panel is filled up with zeros.
type Packed[T Float] struct {
	rows, cols int // of the original matrix
	data       []T
}

// Pack returns b, n x d, as the right operand of MulNT and SparseMulNT. n is the number
// of columns of the product. It copies b, into as much memory and at most 47 d numbers
// more.
func Pack[T Float](b Matrix[T]) *Packed[T] {
	b.check("the matrix to pack")
	w := panelWidth[T]()
	p := &Packed[T]{rows: b.Rows, cols: b.Cols}
	panels := (b.Rows + w - 1) / w
	p.data = aligned[T](panels * w * b.Cols)
	for j := range b.Rows {
		at := j/w*p.panelSize() + j%w
		for _, v := range b.row(j) {
			p.data[at] = v
			at += w
		}
	}
	return p
}

// PackTransposed returns the transpose of b, d x n, as the right operand, so that MulNT
// multiplies with b itself. Otherwise it is Pack.
func PackTransposed[T Float](b Matrix[T]) *Packed[T] {
	b.check("the matrix to pack")
	w := panelWidth[T]()
	p := &Packed[T]{rows: b.Cols, cols: b.Rows}
	panels := (b.Cols + w - 1) / w
	p.data = aligned[T](panels * w * b.Rows)
	for i := range b.Rows {
		row := b.row(i)
		for at := i * w; len(row) > 0; at += p.panelSize() {
			row = row[copy(p.data[at:][:w], row):]
		}
	}
	return p
}

// Unpack returns a copy of the original matrix.
func (p *Packed[T]) Unpack() Matrix[T] {
	w := panelWidth[T]()
	m := Of(p.rows, p.cols, make([]T, p.rows*p.cols))
	for j := range m.Rows {
		at := j/w*p.panelSize() + j%w
		row := m.row(j)
		for i := range row {
			row[i] = p.data[at]
			at += w
		}
	}
	return m
}

// Rows returns the number of rows of the original matrix.
func (p *Packed[T]) Rows() int { return p.rows }

// Cols returns the number of columns of the original matrix.
func (p *Packed[T]) Cols() int { return p.cols }

// panelSize returns the number of elements of a panel.
func (p *Packed[T]) panelSize() int { return panelWidth[T]() * p.cols }

// CholeskyUpdate turns the factor L of a into that of a + x x', in place. L is a lower
// triangle, as Cholesky leaves it; x is overwritten. That costs 2 k^2 multiplications;
// a new factor costs k^3/3. It does not update the part above the diagonal that
// Cholesky leaves for CholeskySolve, so solve with CholeskySolveRow from then on. The
// rounding of many updates adds up: factor anew from time to time.
func CholeskyUpdate(l Matrix[float64], x []float64) {
	l.check("the factor")
	k := l.Cols
	if l.Rows != k || len(x) != k {
		panic("dense: the vector does not fit the factor")
	}
	// Givens rotations bring x' under L to zero, one column of L each. A row takes the
	// rotations of all columns on its left, then makes its own. Each rotation waits for
	// the one before it, so four rows at a time keep the machine busy.
	turns := make([]rotation, k)
	i := 0
	for ; i+4 <= k; i += 4 {
		rows := [4][]float64{l.row(i)[:i+1], l.row(i + 1)[:i+2], l.row(i + 2)[:i+3], l.row(i + 3)[:i+4]}
		rotateFour(&rows, (*[4]float64)(x[i:]), turns[:i])
		for r, row := range rows {
			v := rotate(row[i:], x[i+r], turns[i:i+r])
			turns[i+r] = newRotation(&row[i+r], v)
		}
	}
	for ; i < k; i++ {
		row := l.row(i)
		v := rotate(row, x[i], turns[:i])
		turns[i] = newRotation(&row[i], v)
	}
}

// A rotation takes (l, x) to (l cos + x sin, x cos - l sin).
type rotation struct{ cos, sin float64 }

// newRotation returns the rotation that takes (*l, x) to (a positive number, 0).
func newRotation(l *float64, x float64) rotation {
	r := math.Hypot(*l, x)
	turn := rotation{*l / r, x / r}
	*l = r
	return turn
}

// rotate applies the rotations to the first numbers of row and to x, and returns x.
func rotate(row []float64, x float64, turns []rotation) float64 {
	row = row[:len(turns)]
	for j, t := range turns {
		v := row[j]
		row[j] = float64(v*t.cos) + float64(x*t.sin)
		x = float64(x*t.cos) - float64(v*t.sin)
	}
	return x
}

// rotateFour is rotate for four rows.
func rotateFour(rows *[4][]float64, x *[4]float64, turns []rotation) {
	a, b, c, d := rows[0][:len(turns)], rows[1][:len(turns)], rows[2][:len(turns)], rows[3][:len(turns)]
	x0, x1, x2, x3 := x[0], x[1], x[2], x[3]
	for j, t := range turns {
		v0, v1, v2, v3 := a[j], b[j], c[j], d[j]
		a[j] = float64(v0*t.cos) + float64(x0*t.sin)
		b[j] = float64(v1*t.cos) + float64(x1*t.sin)
		c[j] = float64(v2*t.cos) + float64(x2*t.sin)
		d[j] = float64(v3*t.cos) + float64(x3*t.sin)
		x0 = float64(x0*t.cos) - float64(v0*t.sin)
		x1 = float64(x1*t.cos) - float64(v1*t.sin)
		x2 = float64(x2*t.cos) - float64(v2*t.sin)
		x3 = float64(x3*t.cos) - float64(v3*t.sin)
	}
	x[0], x[1], x[2], x[3] = x0, x1, x2, x3
}

// CholeskySolveRow is CholeskySolve for one row. It does without the copy of L, which
// pays only for many rows. The two differ in rounding.
func CholeskySolveRow(x []float64, l Matrix[float64]) {
	l.check("the factor")
	k := l.Cols
	if l.Rows != k || len(x) != k {
		panic("dense: the right side does not fit the factor")
	}
	for i := range k { // L y = b
		row := l.row(i)
		x[i] = (x[i] - dot(row[:i], x[:i])) / row[i]
	}
	for i := k - 1; i >= 0; i-- { // L' x = y
		row := l.row(i)
		v := x[i] / row[i]
		x[i] = v
		for j, w := range row[:i] {
			x[j] -= float64(v * w)
		}
	}
}

// dot returns the product of two vectors of the same length, in four sums.
func dot(x, y []float64) float64 {
	y = y[:len(x)]
	var s [4]float64
	j := 0
	for ; j+4 <= len(x); j += 4 {
		a, b := (*[4]float64)(x[j:]), (*[4]float64)(y[j:])
		s[0] += float64(a[0] * b[0])
		s[1] += float64(a[1] * b[1])
		s[2] += float64(a[2] * b[2])
		s[3] += float64(a[3] * b[3])
	}
	for ; j < len(x); j++ {
		s[0] += float64(x[j] * y[j])
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}
