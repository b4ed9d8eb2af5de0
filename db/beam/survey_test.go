package beam

import "testing"

// A group of files that is left out as a whole is not counted as one row.
func TestGroupsAreNoRows(t *testing.T) {
	rows, groups := leftOut([]Rejected{{Files: "a", Row: 0}, {Files: "b", Row: -1}, {Files: "a", Row: 7}})
	if rows != 2 || groups != 1 {
		t.Errorf("%d rows, %d groups", rows, groups)
	}
}
