package dense

import (
	"math"
	"sync"
)

// cholBlock is the number of columns of a factor that are computed at a time: whole
// panels.
const cholBlock = 48

// solveBlock is the number of columns that right sides lose in one product, for what is
// solved: wide products read their left operand less often.
const solveBlock = 4 * cholBlock

// cholRows is the number of rows of a block of columns that one goroutine takes.
const cholRows = 64

// Cholesky replaces a, symmetric and k x k, by the factor L of a = L L': lower
// triangular, with a positive diagonal. a is given by its lower triangle and may hold
// anything above the diagonal; afterwards it holds there what CholeskySolve needs. It
// returns false if a is not positive definite, or so little that rounding decides: if
// no more is left of a number of the diagonal than k times its rounding. Then a is half
// done.
//
// It costs k^3/3 multiplications, on at most workers goroutines, and 1 KB a row. The
// result is the same, to the last bit, for any number of workers.
func Cholesky(a Matrix[float64], workers int) bool {
	a.check("the matrix to factor")
	k := a.Cols
	if a.Rows != k {
		panic("dense: only square matrices have a Cholesky factor")
	}
	// Go over blocks of columns. A block first loses what the columns on its left have
	// of A, in one product (the left-looking algorithm). That leaves L_jj L_jj' on the
	// diagonal, and L_ij L_jj' below.
	for j := 0; j < k; j += cholBlock {
		end := min(j+cholBlock, k)
		left := Pack(a.Slice(j, end).columns(0, j))
		diagonal := a.Slice(j, end).columns(j, end)
		var scale [cholBlock]float64
		for i := range diagonal.Rows {
			scale[i] = diagonal.row(i)[i]
		}
		subtractProduct(a.Slice(j, end), j, end, 0, j, left)
		if !factor(diagonal, scale[:diagonal.Rows], float64(k)*0x1p-53) {
			return false
		}
		invert(diagonal)
		if end == k {
			break
		}
		inverse := Pack(inverted(diagonal))
		eachRows(a.Slice(end, k), workers, func(rows Matrix[float64]) {
			subtractProduct(rows, j, end, 0, j, left)
			multiply(rows, j, end, inverse)
		})
	}
	return true
}

// CholeskySolve replaces each row b of x by b (L L')^-1, the solution of the equations
// with the matrix that Cholesky factored. It costs k^2 multiplications a row, and 2 KB
// a row of L. At most workers goroutines share the rows. A row has the same result, to
// the last bit, for any number of workers and any other rows.
func CholeskySolve(x, l Matrix[float64], workers int) {
	CholeskyForward(x, l, workers) // y L' = b
	k := l.Cols
	for j := (k - 1) / solveBlock * solveBlock; j >= 0; j -= solveBlock { // x L = y
		end := min(j+solveBlock, k)
		strips := []strip{{j, end, end, k, PackTransposed(l.Slice(end, k).columns(j, end)), nil}}
		for i := j + (end-1-j)/cholBlock*cholBlock; i >= j; i -= cholBlock {
			e := min(i+cholBlock, end)
			strips = append(strips, strip{i, e, e, end,
				PackTransposed(l.Slice(e, end).columns(i, e)),
				PackTransposed(inverted(l.Slice(i, e).columns(i, e)))})
		}
		solveStrips(x, strips, workers)
	}
}

// CholeskyInverse writes the first rows of L'^-1 to x, as many as it has: what
// CholeskyForward makes of the first rows of the identity. All k of them cost k^3/6
// multiplications.
func CholeskyInverse(x, l Matrix[float64], workers int) {
	n, k := x.Rows, l.Cols
	for i := range n {
		clear(x.row(i))
		x.row(i)[i] = 1
	}
	// Row i begins with i zeros, so the first columns of L do not count.
	const rows = 5 * cholBlock
	for i := 0; i < n; i += rows {
		CholeskyForward(x.Slice(i, min(i+rows, n)).columns(i, k), l.Slice(i, k).columns(i, k), workers)
	}
}

// CholeskyForward replaces each row b of x by b L'^-1, half of the way to the solution: the
// product of two such rows is b (L L')^-1 c'. It costs half as much as CholeskySolve, and
// its results are as independent of workers and other rows.
func CholeskyForward(x, l Matrix[float64], workers int) {
	x.check("the right sides")
	l.check("the factor")
	k := l.Cols
	if l.Rows != k || x.Cols != k {
		panic("dense: the right sides do not fit the factor")
	}
	for j := 0; j < k; j += solveBlock {
		end := min(j+solveBlock, k)
		strips := []strip{{j, end, 0, j, Pack(l.Slice(j, end).columns(0, j)), nil}}
		for i := j; i < end; i += cholBlock {
			e := min(i+cholBlock, end)
			strips = append(strips, strip{i, e, j, i, Pack(l.Slice(i, e).columns(j, i)),
				Pack(inverted(l.Slice(i, e).columns(i, e)))})
		}
		solveStrips(x, strips, workers)
	}
}

// A strip is a step of solving: columns first to end-1 of the right sides lose what
// columns from to to-1, which are solved, have of them. Then they are solved themselves.
type strip struct {
	first, end int
	from, to   int
	solved     *Packed[float64] // part of L for columns from to to-1
	inverse    *Packed[float64] // of part of L on the diagonal; nil if other strips solve the columns
}

// solveStrips goes over the strips with each row of x.
func solveStrips(x Matrix[float64], strips []strip, workers int) {
	for _, s := range strips {
		for i, v := range s.solved.data {
			s.solved.data[i] = -v
		}
	}
	eachRows(x, workers, func(rows Matrix[float64]) {
		for _, s := range strips {
			addNT(rows.columns(s.first, s.end), rows.columns(s.from, s.to), s.solved)
			if s.inverse != nil {
				multiply(rows, s.first, s.end, s.inverse)
			}
		}
	})
}

// eachRows calls f with the rows of x, some rows at a time.
func eachRows(x Matrix[float64], workers int, f func(rows Matrix[float64])) {
	parallel(workers, (x.Rows+cholRows-1)/cholRows, func(i int) {
		f(x.Slice(i*cholRows, min((i+1)*cholRows, x.Rows)))
	})
}

// rooms are for products of some rows. They are used thousands of times in a training.
var rooms = sync.Pool{New: func() any { return new([cholRows * cholBlock]float64) }}

// subtractProduct subtracts from columns j to end-1 of x the product of its columns
// from to to-1 with the transpose of the matrix that b was packed from.
func subtractProduct(x Matrix[float64], j, end, from, to int, b *Packed[float64]) {
	if from == to {
		return
	}
	room := rooms.Get().(*[cholRows * cholBlock]float64)
	defer rooms.Put(room)
	for i := 0; i < x.Rows; i += cholRows {
		rows := x.Slice(i, min(i+cholRows, x.Rows))
		product := Of(rows.Rows, end-j, room[:])
		MulNT(product, rows.columns(from, to), b)
		for r := range product.Rows {
			dst := rows.row(r)[j:end]
			for c, v := range product.row(r) {
				dst[c] -= v
			}
		}
	}
}

// multiply replaces columns j to end-1 of x by their product with the transpose of the
// matrix that b was packed from.
func multiply(x Matrix[float64], j, end int, b *Packed[float64]) {
	room := rooms.Get().(*[cholRows * cholBlock]float64)
	defer rooms.Put(room)
	product := Of(x.Rows, end-j, room[:])
	MulNT(product, x.columns(j, end), b)
	for r := range product.Rows {
		copy(x.row(r)[j:end], product.row(r))
	}
}

// factor is Cholesky for one block, number by number. scale is the diagonal before
// anything was subtracted, and eps the share of it that has to be left.
func factor(a Matrix[float64], scale []float64, eps float64) bool {
	for i := range a.Rows {
		row := a.row(i)
		for j := range i + 1 {
			other := a.row(j)
			sum := row[j]
			for p, v := range other[:j] {
				sum -= float64(row[p] * v)
			}
			switch {
			case j < i:
				row[j] = sum / other[j]
			case sum > eps*scale[i] && sum-sum == 0:
				row[i] = math.Sqrt(sum)
			default:
				return false
			}
		}
	}
	return true
}

// invert writes the inverse of a lower triangular matrix, transposed, above its
// diagonal. It does not write the diagonal of the inverse.
func invert(l Matrix[float64]) {
	var room [cholBlock * cholBlock]float64
	inv := Of(l.Rows, l.Rows, room[:])
	for i := range l.Rows {
		// Row i of L times the inverse is row i of the identity.
		row, dst := l.row(i), inv.row(i)
		for p, v := range row[:i] {
			for j, w := range inv.row(p)[:p+1] {
				dst[j] -= float64(v * w)
			}
		}
		dst[i] = 1
		for j := range i + 1 {
			dst[j] /= row[i]
		}
		for j, v := range dst[:i] {
			l.row(j)[i] = v
		}
	}
}

// inverted returns the inverse that invert has written into l.
func inverted(l Matrix[float64]) Matrix[float64] {
	n := l.Rows
	inv := Of(n, n, make([]float64, n*n))
	for i := range n {
		row := l.row(i)
		inv.Data[i*n+i] = 1 / row[i]
		for j, v := range row[i+1:] {
			inv.Data[(i+1+j)*n+i] = v
		}
	}
	return inv
}
