package dense

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"
)

const (
	// A unit of work is at most unitRows x unitPanels panels of the result; unitRows is
	// a multiple of the width of a panel. It takes some hundred microseconds, and its
	// packed panels fit into the second cache.
	unitRows   = 96
	unitPanels = 8
)

// AddGram adds the product of the transpose of x and x to c: with x of n x k, c
// is k x k and
//
//	c[i][j] += x[0][i] x[0][j] + x[1][i] x[1][j] + ... + x[n-1][i] x[n-1][j]
//
// for j <= i. Above the diagonal c holds nothing of use afterwards: some elements are
// computed, others are not. c must not overlap with x. AddGram keeps neither.
//
// It uses at most workers goroutines, and about 2 k KB of memory, which it keeps for
// later calls. The products are added to an element in the order of the rows, in
// float64: the sums are the same, to the last bit, for any number of workers and
// however the rows are cut into calls.
func AddGram[S Float](c Matrix[float64], x Matrix[S], workers int) {
	if c.Rows != c.Cols {
		panic(fmt.Sprintf("dense: a Gram matrix of %d x %d", c.Rows, c.Cols))
	}
	addTN(c, x, x, true, workers)
}

// AddTN adds the product of the transpose of a and b to c: with a of n x m and
// b of n x k, c is m x k and
//
//	c[i][j] += a[0][i] b[0][j] + a[1][i] b[1][j] + ... + a[n-1][i] b[n-1][j].
//
// Otherwise it is like AddGram.
func AddTN[R, S Float](c Matrix[float64], a Matrix[R], b Matrix[S], workers int) {
	addTN(c, a, b, false, workers)
}

func addTN[R, S Float](c Matrix[float64], a Matrix[R], b Matrix[S], lower bool, workers int) {
	a.check("the left operand")
	b.check("the right operand")
	c.check("the sum")
	if a.Rows != b.Rows || c.Rows != a.Cols || c.Cols != b.Cols {
		panic(fmt.Sprintf("dense: the product of the transpose of %d x %d and %d x %d is not %d x %d",
			a.Rows, a.Cols, b.Rows, b.Cols, c.Rows, c.Cols))
	}
	if a.Rows == 0 || c.Rows == 0 || c.Cols == 0 {
		return
	}
	w := panelWidth[float64]()
	depth := min(depthBy(active), a.Rows)
	rightPanels := (b.Cols + w - 1) / w
	leftPanels := 0
	if !lower {
		leftPanels = (a.Cols + w - 1) / w
	}
	p := packs.Get().(*pack)
	defer packs.Put(p)
	p.grow((rightPanels + leftPanels) * w * depth)
	unitCols, down := unitPanels*w, (c.Rows+unitRows-1)/unitRows
	across := (c.Cols + unitCols - 1) / unitCols
	for workers > 1 && unitCols > w && across*down < 8*workers {
		unitCols /= 2
		across = (c.Cols + unitCols - 1) / unitCols
	}
	units := across * down
	for first := 0; first < a.Rows; first += depth {
		rows := min(depth, a.Rows-first)
		right := p.data[:rightPanels*w*rows]
		left := right
		if !lower {
			left = p.data[len(right):][:leftPanels*w*rows]
		}
		parallel(workers, rightPanels+leftPanels, func(i int) {
			if i < rightPanels {
				packPanel(right[i*w*rows:][:w*rows], b, first, i*w)
			} else {
				i -= rightPanels
				packPanel(left[i*w*rows:][:w*rows], a, first, i*w)
			}
		})
		parallel(workers, units, func(unit int) {
			// The last units of the lower triangle are the largest, so begin with them.
			unit = units - 1 - unit
			i, j := unit/across*unitRows, unit%across*unitCols
			s := borrow[float64]()
			defer giveBack(s)
			addUnit(c, left, right, rows, i, j, min(j+unitCols, c.Cols), lower, s)
		})
	}
}

// addUnit adds the product of packed panels of n rows to the unit of c that begins at
// element (i, j) and ends before column end.
func addUnit(c Matrix[float64], left, right []float64, n, i, j, end int, lower bool, s *scratch[float64]) {
	const bytes = 8
	w := panelWidth[float64]()
	bottom := min(i+unitRows, c.Rows)
	t := tile{n: n, row: bytes, col: panelBytes}
	for ; j < end; j += w {
		t.b = unsafe.Pointer(&right[j*n])
		top := i
		if lower {
			top = max(i, j) // a multiple of the height of tiles, as i and j are
		}
		for r := top; r < bottom; r += tileRows {
			t.a = unsafe.Pointer(&left[r/w*w*n+r%w])
			s.multiply(&t, c, r, j)
		}
	}
}

// packPanel copies a panel of x to dst: the columns from col on, and as many rows from
// first on as dst has room for. Columns that x lacks become zeros.
func packPanel[S Float](dst []float64, x Matrix[S], first, col int) {
	w := panelWidth[float64]()
	rows := len(dst) / w
	cols := min(w, x.Cols-col)
	if data, ok := any(x.Data).([]float32); ok && cols == w {
		src := data[first*x.Stride+col:]
		_ = src[(rows-1)*x.Stride+w-1]
		widenBy(active, rows, &dst[0], &src[0], x.Stride)
		return
	}
	for r := range rows {
		to := dst[r*w:][:w]
		convert(to[:cols], x.Data[(first+r)*x.Stride+col:][:cols])
		clear(to[cols:])
	}
}

// A pack is memory for packed rows.
type pack struct{ data []float64 }

var packs = sync.Pool{New: func() any { return new(pack) }}

func (p *pack) grow(n int) {
	if len(p.data) < n {
		p.data = aligned[float64](n)
	}
}

// parallel calls f(i) for each i below n, on at most workers goroutines, and returns
// when all calls are done.
func parallel(workers, n int, f func(i int)) {
	workers = min(workers, n)
	if workers <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var wg sync.WaitGroup
	var next atomic.Int64
	for range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}
