package table

import (
	"cmp"
	"fmt"
	"slices"
)

// A Sorter sorts sparse vectors. The zero Sorter is ready. It keeps memory for the next
// vector, and belongs to one goroutine at a time.
type Sorter struct{ entries []entry }

type entry struct {
	column uint32
	value  float32
}

// Sort sorts the columns of a vector and drops zeros, in place. A column that comes
// twice is an error. It costs as much as sorting n numbers.
func (s *Sorter) Sort(x Sparse) (Sparse, error) {
	s.entries = s.entries[:0]
	for e, j := range x.Index {
		s.entries = append(s.entries, entry{j, x.Value[e]})
	}
	slices.SortFunc(s.entries, func(a, b entry) int { return cmp.Compare(a.column, b.column) })
	x.Index, x.Value = x.Index[:0], x.Value[:0]
	for e, v := range s.entries {
		if e > 0 && s.entries[e-1].column == v.column {
			return x, fmt.Errorf("column %d is there twice", v.column)
		}
		if v.value != 0 {
			x.Index, x.Value = append(x.Index, v.column), append(x.Value, v.value)
		}
	}
	return x, nil
}
