package command

import (
	"fmt"
	"testing"
)

func TestSkippedRows(t *testing.T) {
	var s skippedRows
	for i := range 100 {
		s.add(i, fmt.Sprintf("a.npy: row %d, column %d: NaN", i, i%7))
	}
	for i := range 3 {
		s.add(100+i, fmt.Sprintf(`the key "k%d" stands on line %d and on line %d`, i, i, 50+i))
	}
	for i := range 30 {
		s.add(200+i, fmt.Sprintf("reason %c", 'a'+i))
	}
	if s.n != 133 || len(s.groups) != shownReasons+1 {
		t.Fatalf("%d rows, %d groups", s.n, len(s.groups))
	}
	sum := 0
	for _, g := range s.groups {
		sum += g.Count
	}
	first, second, last := s.groups[0], s.groups[1], s.groups[shownReasons]
	if sum != s.n || first.Count != 100 || fmt.Sprint(first.Rows) != "[0 1 2 3 4]" || first.Reason != "a.npy: row 0, column 0: NaN" ||
		second.Count != 3 || last.Reason != "other reasons" || last.Count != 30-shownReasons+2 {
		t.Errorf("%+v %+v %+v", first, second, last)
	}
}
