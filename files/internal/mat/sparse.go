package mat

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// number is a number of a sparse matrix. The file has them column by column; they are held and sorted by rows
// first, in 12 bytes each.
type number struct {
	row, column uint32
	value       float32
}

func (f *file) openSparse(src matrix.Source, v *variable, at, end int64) (*matrix.Vectors, error) {
	numbers, err := f.numbers(src, v, at, end)
	if err != nil {
		if errors.Is(err, errDamaged) {
			err = src.Fail("variable %s: %w", matrix.Quote(v.name), err)
		}
		return nil, err
	}
	row := uint32(0)
	return matrix.New(matrix.Format{Name: src.Name, Rows: int(v.dims[0]), Cols: int(v.dims[1]), Sparse: true,
		Closer: src.Closer,
		Entries: func(x *matrix.Sparse) error {
			var bad error
			for ; len(numbers) > 0 && numbers[0].row == row; numbers = numbers[1:] {
				n := numbers[0]
				if x.Index, x.Value = append(x.Index, n.column),
					append(x.Value, n.value); n.value != n.value && bad == nil {
					bad = matrix.Bad(int(n.column), errNoNumber)
				}
			}
			row++
			return bad
		}}), nil
}

var errNoNumber = errors.New(
	"is not a finite number that float32 can hold, which every value of a vector must be: replace it or drop the row")

// numbers reads the numbers of a sparse matrix, by rows.
func (f *file) numbers(src matrix.Source, v *variable, at, end int64) (numbers []number, err error) {
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
				numbers = append(numbers, number{uint32(row), uint32(j), x[0]})
			}
		}
	}
	if err != nil {
		return nil, err
	}
	// Within a row columns ascend already.
	slices.SortStableFunc(numbers, func(a, b number) int { return cmp.Compare(a.row, b.row) })
	for i := 1; i < len(numbers); i++ {
		if a, b := numbers[i-1], numbers[i]; a.row == b.row && a.column == b.column {
			return nil, fmt.Errorf("column %d of row %d has two numbers: %w", b.column, b.row, errDamaged)
		}
	}
	return numbers, nil
}
