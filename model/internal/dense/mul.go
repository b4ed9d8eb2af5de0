package dense

import (
	"fmt"
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
	rowBy(active, size[T](), len(x), unsafe.Pointer(&x[0]), unsafe.Pointer(&b[0]), panels, unsafe.Pointer(&c[0]))
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
