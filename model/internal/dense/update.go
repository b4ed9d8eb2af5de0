package dense

import "math"

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
