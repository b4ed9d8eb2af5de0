package dense

import (
	"fmt"
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
		panic(fmt.Sprintf("dense: %s is %d x %d with a stride of %d, but has %d numbers", name, m.Rows, m.Cols, m.Stride, len(m.Data)))
	}
}

// aligned returns n zeros that start at a line of the cache.
func aligned[T Float](n int) []T {
	line := cacheLine / size[T]()
	x := make([]T, n+line)
	skip := -int(uintptr(unsafe.Pointer(&x[0]))/uintptr(size[T]())) & (line - 1)
	return x[skip : skip+n : skip+n]
}
