package matrix

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Sparse is a vector that holds only its nonzero numbers: Value[e] in column Index[e]. Columns ascend
// strictly.
type Sparse struct {
	Index []uint32
	Value []float32
}

// A Sorter sorts sparse vectors. The zero Sorter is ready. It keeps memory for the next vector, and belongs
// to one goroutine at a time.
type Sorter struct{ entries []entry }

type entry struct {
	column uint32
	value  float32
}

// Sort sorts the columns of a vector and drops zeros, in place. Numbers of one column are added up if sum,
// else they are an error. It costs as much as sorting n numbers.
func (s *Sorter) Sort(x *Sparse, sum bool) error {
	s.entries = s.entries[:0]
	for e, j := range x.Index {
		s.entries = append(s.entries, entry{j, x.Value[e]})
	}
	slices.SortStableFunc(s.entries, func(a, b entry) int { return cmp.Compare(a.column, b.column) })
	x.Index, x.Value = x.Index[:0], x.Value[:0]
	for i := 0; i < len(s.entries); {
		first := s.entries[i]
		i++
		total := float64(first.value)
		for ; i < len(s.entries) && s.entries[i].column == first.column; i++ {
			if !sum {
				return fmt.Errorf("column %d is there twice", first.column)
			}
			total += float64(s.entries[i].value)
		}
		switch v := float32(total); {
		case math.IsInf(float64(v), 0):
			return Bad(int(first.column), TooLarge(fmt.Sprint(total)))
		case v != 0:
			x.Index, x.Value = append(x.Index, first.column), append(x.Value, v)
		}
	}
	return nil
}
