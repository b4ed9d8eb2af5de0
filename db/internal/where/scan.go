package where

import "sort"

// A Scan is a test of a field without an index: it is true of some of the values. Rows reads the
// values of the field, and calls the method for its Type.
type Scan struct {
	Field int
	Type  Type

	any     bool            // has(field): any value will do
	ints    []span[int64]   // ascending, apart from each other; and so are the others
	floats  []span[float64] // without NaN
	strings []Range
	bools   [2]bool // whether false and true are admitted
}

// Int reports whether the test is true of a value of an int field, or of the microseconds of a time.
func (s *Scan) Int(x int64) bool { return s.any || among(s.ints, x) }

// Float reports whether the test is true of a value of a float field.
func (s *Scan) Float(x float64) bool { return s.any || among(s.floats, x) }

// Bool reports whether the test is true of a value of a bool field.
func (s *Scan) Bool(x bool) bool { return s.any || s.bools[truth(x)] }

// String reports whether the test is true of a value of a string field. It does not keep x.
func (s *Scan) String(x []byte) bool {
	if s.any {
		return true
	}
	i := 0
	if len(s.strings) > 1 {
		i = sort.Search(len(s.strings), func(i int) bool { return s.strings[i].Open || string(x) < s.strings[i].Hi })
	}
	if i == len(s.strings) {
		return false
	}
	r := &s.strings[i]
	return string(x) >= r.Lo && (r.Open || string(x) < r.Hi)
}

// among reports whether a value is in one of spans.
func among[T int64 | float64](spans []span[T], x T) bool {
	i := 0
	if len(spans) > 1 {
		i = sort.Search(len(spans), func(i int) bool { return x <= spans[i].hi })
	}
	return i < len(spans) && spans[i].lo <= x && x <= spans[i].hi
}

func truth(x bool) int {
	if x {
		return 1
	}
	return 0
}
