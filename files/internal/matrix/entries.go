package matrix

import (
	"cmp"
	"errors"
	"slices"
)

// An Entry is a number of a sparse matrix. A file that does not have them row by row is read into memory, in
// 12 bytes each. NaN stands for a number that no vector can have.
type Entry struct {
	Row, Column uint32
	Value       float32
}

var errNoNumber = errors.New(
	"is not a finite number that float32 can hold, which every value of a vector must be: replace it or drop the row")

// ByRows returns the rows of a sparse matrix. It sorts and keeps the entries. Within a row their order stays.
func ByRows(f Format, entries []Entry) *Vectors {
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Row, b.Row) })
	row := uint32(0)
	f.Sparse = true
	f.Entries = func(x *Sparse) error {
		var bad error
		for ; len(entries) > 0 && entries[0].Row == row; entries = entries[1:] {
			e := entries[0]
			x.Index, x.Value = append(x.Index, e.Column), append(x.Value, e.Value)
			if e.Value != e.Value && bad == nil {
				bad = Bad(int(e.Column), errNoNumber)
			}
		}
		row++
		return bad
	}
	return New(f)
}
