package files

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

// matSparse is the SparseReader of a sparse matrix. The file has numbers column by
// column; they are held and sorted by rows first, in 12 bytes each.
type matSparse struct {
	src        source
	rows, cols int
	numbers    []matNumber // by row, then column
	next       int         // row
	at         int         // index in numbers
	err        error       // the final error
}

type matNumber struct {
	row, column uint32
	value       float32
}

func (f *matFile) openSparse(src source, v *matVariable, at, end int64) (Reader, error) {
	r := &matSparse{src: src, rows: int(v.dims[0]), cols: int(v.dims[1])}
	fail := func(format string, args ...any) error {
		return src.fail("variable %s: %w", quote([]byte(v.name)), fmt.Errorf(format, args...))
	}
	var parts [3]*vector
	for i := range parts {
		e, err := f.element(src, at, end)
		if err != nil {
			return nil, err
		}
		at = e.next
		d, ok := matTypes[e.kind]
		if !ok || e.size%int64(d.size) != 0 || i < 2 && (d.kind == 'f' || d.size != 4) {
			return nil, fail("its part %d is of type %d and %s bytes: %w", i, e.kind, thousands(e.size), errMAT)
		}
		d.big = f.order == binary.ByteOrder(binary.BigEndian) && d.size > 1
		parts[i] = &vector{src: src, dtype: d, n: e.size / int64(d.size), at: e.at, end: e.at + e.size}
	}
	rows, starts, values := parts[0], parts[1], parts[2]
	if starts.n != int64(r.cols)+1 {
		return nil, fail("%s columns have %s starts: %w", thousands(r.cols), thousands(starts.n), errMAT)
	}
	most := min(rows.n, values.n)
	last, err := starts.integer()
	if err == nil && last != 0 {
		err = errMAT
	}
	for j := 0; j < r.cols && err == nil; j++ {
		var stop int64
		if stop, err = starts.integer(); err != nil {
			break
		}
		if stop < last || stop > most {
			return nil, fail("column %d ends at %d of %d numbers, the one before at %d: %w", j, stop, most, last, errMAT)
		}
		for ; last < stop && err == nil; last++ {
			err = r.number(v, rows, values, uint32(j))
		}
	}
	if err != nil {
		if errors.Is(err, errMAT) {
			err = fail("%w", err)
		}
		return nil, err
	}
	// Within a row columns ascend already.
	slices.SortStableFunc(r.numbers, func(a, b matNumber) int { return cmp.Compare(a.row, b.row) })
	for i := 1; i < len(r.numbers); i++ {
		if a, b := r.numbers[i-1], r.numbers[i]; a.row == b.row && a.column == b.column {
			return nil, fail("column %d of row %d has two numbers: %w", b.column, b.row, errMAT)
		}
	}
	return r, nil
}

// number reads the next number of a column.
func (r *matSparse) number(v *matVariable, rows, values *vector, column uint32) error {
	row, err := rows.integer()
	if err != nil {
		return err
	}
	if row < 0 || row >= int64(r.rows) {
		return fmt.Errorf("it has a number in row %d of %s: %w", row, thousands(r.rows), errMAT)
	}
	b, err := values.element()
	if err != nil {
		return err
	}
	var x [1]float32
	if values.dtype.float32s(x[:], b) >= 0 {
		// NextSparse refuses a NaN with its row.
		x[0] = float32(math.NaN())
	}
	if x[0] != 0 {
		r.numbers = append(r.numbers, matNumber{uint32(row), column, x[0]})
	}
	return nil
}

func (r *matSparse) Rows() int { return r.rows }
func (r *matSparse) Cols() int { return r.cols }

func (r *matSparse) Next(dst []float32) error {
	if r.err == nil && len(dst) != r.cols {
		return r.src.fail("a row has %d values, the slice for it %d", r.cols, len(dst))
	}
	row, err := r.row()
	if err != nil {
		return err
	}
	clear(dst)
	for _, x := range row {
		dst[x.column] = x.value
	}
	return nil
}

func (r *matSparse) NextSparse(index []uint32, value []float32) ([]uint32, []float32, error) {
	row, err := r.row()
	if err != nil {
		return index, value, err
	}
	for _, x := range row {
		index, value = append(index, x.column), append(value, x.value)
	}
	return index, value, nil
}

// row returns the numbers of the next row.
func (r *matSparse) row() ([]matNumber, error) {
	if r.err == nil && r.next == r.rows {
		r.err = io.EOF
	}
	if r.err != nil {
		return nil, r.err
	}
	start := r.at
	for r.at < len(r.numbers) && int(r.numbers[r.at].row) == r.next {
		r.at++
	}
	r.next++
	row := r.numbers[start:r.at]
	for _, x := range row {
		if x.value != x.value {
			return nil, &Error{File: r.src.name, Row: r.next - 1, Col: int(x.column),
				Err: errors.New("is not a finite number that float32 can hold, which every value of a vector must be: replace it or drop the row")}
		}
	}
	return row, nil
}

func (r *matSparse) Close() error {
	if errors.Is(r.err, os.ErrClosed) {
		return nil
	}
	r.err = fileError(r.src.name, os.ErrClosed)
	r.numbers = nil
	return r.src.close()
}
