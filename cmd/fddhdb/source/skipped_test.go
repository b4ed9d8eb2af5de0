package source

import (
	"fmt"
	"testing"
)

func TestSkippedRows(t *testing.T) {
	var s SkippedRows
	for i := range 100 {
		s.Add(i, fmt.Sprintf("a.npy: row %d, column %d: NaN", i, i%7))
	}
	for i := range 3 {
		s.Add(100+i, fmt.Sprintf(`the key "k%d" stands on line %d and on line %d`, i, i, 50+i))
	}
	for i := range 30 {
		s.Add(200+i, fmt.Sprintf("reason %c", 'a'+i))
	}
	if s.N != 133 || len(s.Groups) != shownReasons+1 {
		t.Fatalf("%d rows, %d groups", s.N, len(s.Groups))
	}
	sum := 0
	for _, g := range s.Groups {
		sum += g.Count
	}
	first, second, last := s.Groups[0], s.Groups[1], s.Groups[shownReasons]
	if sum != s.N || first.Count != 100 || fmt.Sprint(first.Rows) != "[0 1 2 3 4]" ||
		first.Reason != "a.npy: row 0, column 0: NaN" ||
		second.Count != 3 || last.Reason != "other reasons" || last.Count != 30-shownReasons+2 {
		t.Errorf("%+v %+v %+v", first, second, last)
	}
	s.Add(-1, "reason !") // has no number
	if last.Count != 30-shownReasons+3 || len(last.Rows) != shownRows {
		t.Errorf("%+v", last)
	}
}
