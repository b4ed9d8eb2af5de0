package dense

import "math"

// cholBlock is how many columns of a factor are computed at a time: whole panels.
const cholBlock = 48

// cholRows is how many rows of a block of columns one goroutine takes.
const cholRows = 32

// Cholesky replaces a, k x k, symmetric and given by its lower triangle, by the
// factor L of a = L L': lower triangular, with a positive diagonal. Above the
// diagonal a may hold anything; afterwards it holds what CholeskySolve needs. It reports
// false when a is not positive definite, or so little that rounding decides: when
// no more is left of a number of the diagonal than k times its rounding. Then a is
// half done.
//
// It costs k^3/3 multiplications, on as many goroutines as workers says, and 1 KB
// a row. The result is the same, to the last bit, for any number of workers.
func Cholesky(a Matrix[float64], workers int) bool {
	a.check("the matrix to factor")
	k := a.Cols
	if a.Rows != k {
		panic("dense: only square matrices have a Cholesky factor")
	}
	// Block by block of columns, each of which first loses what the columns on its
	// left have of A, in one product (the left-looking algorithm). L_jj L_jj' is left
	// on the diagonal, and L_ij L_jj' below.
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

// CholeskySolve replaces each row b of x by b (L L')^-1, the solution of a system
// of equations with the matrix that Cholesky factored. It costs k^2
// multiplications a row, on as many goroutines as workers says, each of which
// takes rows, and 1 KB a row of L. A row has the same result, to the last bit, for
// any number of workers and whatever the others are.
func CholeskySolve(x, l Matrix[float64], workers int) {
	x.check("the right sides")
	l.check("the factor")
	k := l.Cols
	if l.Rows != k || x.Cols != k {
		panic("dense: the right sides do not fit the factor")
	}
	for j := 0; j < k; j += cholBlock { // y L' = b
		end := min(j+cholBlock, k)
		left := Pack(l.Slice(j, end).columns(0, j))
		inverse := Pack(inverted(l.Slice(j, end).columns(j, end)))
		eachRows(x, workers, func(rows Matrix[float64]) {
			subtractProduct(rows, j, end, 0, j, left)
			multiply(rows, j, end, inverse)
		})
	}
	for j := (k - 1) / cholBlock * cholBlock; j >= 0; j -= cholBlock { // x L = y
		end := min(j+cholBlock, k)
		below := PackTransposed(l.Slice(end, k).columns(j, end))
		inverse := PackTransposed(inverted(l.Slice(j, end).columns(j, end)))
		eachRows(x, workers, func(rows Matrix[float64]) {
			subtractProduct(rows, j, end, end, k, below)
			multiply(rows, j, end, inverse)
		})
	}
}

// eachRows calls f with the rows of x, some at a time.
func eachRows(x Matrix[float64], workers int, f func(rows Matrix[float64])) {
	parallel(workers, (x.Rows+cholRows-1)/cholRows, func(i int) {
		f(x.Slice(i*cholRows, min((i+1)*cholRows, x.Rows)))
	})
}

// subtractProduct subtracts from columns j to end of x its columns from to to,
// times the transpose of the matrix b was packed from.
func subtractProduct(x Matrix[float64], j, end, from, to int, b *Packed[float64]) {
	if from == to {
		return
	}
	var room [cholRows * cholBlock]float64
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

// multiply replaces columns j to end of x by their product with the transpose of
// the matrix b was packed from.
func multiply(x Matrix[float64], j, end int, b *Packed[float64]) {
	var room [cholRows * cholBlock]float64
	product := Of(x.Rows, end-j, room[:])
	MulNT(product, x.columns(j, end), b)
	for r := range product.Rows {
		copy(x.row(r)[j:end], product.row(r))
	}
}

// factor is Cholesky for one block, number by number: scale is what the diagonal
// was, before anything was taken from it, and eps which part of that has to be
// left.
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
// diagonal; that of the diagonal is not written.
func invert(l Matrix[float64]) {
	var room [cholBlock * cholBlock]float64
	inv := Of(l.Rows, l.Rows, room[:])
	for i := range l.Rows {
		// Row i of L times the inverse is that of the identity.
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

// inverted returns the inverse that invert has written.
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
