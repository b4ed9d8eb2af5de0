package dense

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
