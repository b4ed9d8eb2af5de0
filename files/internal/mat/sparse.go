package mat

import (
	"errors"
	"fmt"
	"math"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

func (f *file) openSparse(src matrix.Source, v *variable, at, end int64) (*matrix.Vectors, error) {
	numbers, err := f.numbers(src, v, at, end)
	rows := matrix.ByRows(matrix.Format{Name: src.Name, Rows: int(v.dims[0]), Cols: int(v.dims[1]),
		Closer: src.Closer}, numbers)
	for i := 1; i < len(numbers) && err == nil; i++ {
		if a, b := numbers[i-1], numbers[i]; a.Row == b.Row && a.Column == b.Column {
			err = fmt.Errorf("column %d of row %d has two numbers: %w", b.Column, b.Row, errDamaged)
		}
	}
	if err != nil {
		if errors.Is(err, errDamaged) {
			err = src.Fail("variable %s: %w", matrix.Quote(v.name), err)
		}
		return nil, err
	}
	return rows, nil
}

// numbers reads the numbers of a sparse matrix, which the file has column by column.
func (f *file) numbers(src matrix.Source, v *variable, at, end int64) (numbers []matrix.Entry, err error) {
	var parts [3]*matrix.Run
	for i := range parts {
		e, err := f.element(src, at, end)
		if err != nil {
			return nil, err
		}
		at = e.next
		t, ok := f.kind(e.kind)
		if !ok || e.size%int64(t.Size) != 0 || i < 2 && (t.Kind == 'f' || t.Size != 4) {
			return nil, fmt.Errorf("its part %d is of type %d and %s bytes: %w", i, e.kind,
				matrix.Thousands(e.size), errDamaged)
		}
		parts[i] = &matrix.Run{Source: src, Type: t, N: e.size / int64(t.Size), At: e.at, End: e.at + e.size}
	}
	rows, starts, values := parts[0], parts[1], parts[2]
	if starts.N != v.dims[1]+1 {
		return nil, fmt.Errorf("%s columns have %s starts: %w", matrix.Thousands(v.dims[1]),
			matrix.Thousands(starts.N), errDamaged)
	}
	most := min(rows.N, values.N)
	last, err := starts.Integer()
	if err == nil && last != 0 {
		err = errDamaged
	}
	for j := int64(0); j < v.dims[1] && err == nil; j++ {
		stop, err := starts.Integer()
		if err != nil {
			return nil, err
		}
		if stop < last || stop > most {
			return nil, fmt.Errorf("column %d ends at %d of %d numbers, the one before at %d: %w", j, stop,
				most, last, errDamaged)
		}
		for ; last < stop; last++ {
			row, err := rows.Integer()
			if err != nil {
				return nil, err
			}
			if row < 0 || row >= v.dims[0] {
				return nil, fmt.Errorf("it has a number in row %d of %s: %w", row,
					matrix.Thousands(v.dims[0]), errDamaged)
			}
			b, err := values.Element()
			if err != nil {
				return nil, err
			}
			var x [1]float32
			if values.Type.Float32s(x[:], b) >= 0 {
				x[0] = float32(math.NaN()) // refused with its row
			}
			if x[0] != 0 {
				numbers = append(numbers, matrix.Entry{Row: uint32(row), Column: uint32(j), Value: x[0]})
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return numbers, nil
}
