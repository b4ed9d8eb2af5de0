package where

import (
	"sort"

	"github.com/RoaringBitmap/roaring/v2"
)

// Rows is a set of rows with its indexes, which Eval reads. The bitmaps that it returns are
// only read, so they may be shared. It may return rows that are not live. An error ends the
// evaluation. Each method may read the store, and is called as often as an expression names
// it; none is called for the parts of an AND behind one that leaves no row.
type Rows interface {
	// Live returns all rows.
	Live() *roaring.Bitmap
	// Label returns the rows that have a label.
	Label(name string) (*roaring.Bitmap, error)
	// Labelled returns the rows that have any label.
	Labelled() (*roaring.Bitmap, error)
	// Modality returns the rows that have a modality.
	Modality(id int) (*roaring.Bitmap, error)

	// Valued returns the rows that have any value of an indexed field.
	Valued(field int) (*roaring.Bitmap, error)

	// Ints, Floats, Strings and Bools return the rows that have a value of a field in
	// the range; lo and hi are included. They are called only for indexed fields of their type.
	// -0 and 0 are one value.
	Ints(field int, lo, hi int64) (*roaring.Bitmap, error)
	Floats(field int, lo, hi float64) (*roaring.Bitmap, error)
	Strings(field int, r Range) (*roaring.Bitmap, error)
	Bools(field int, value bool) (*roaring.Bitmap, error)

	// Grams returns rows whose value of a field with Words has all of these folded trigrams, or may
	// have them: a Scan looks. It may read fewer of the sets than there are trigrams.
	Grams(field int, grams []string) (*roaring.Bitmap, error)

	// Scan returns the rows in among for which test i of Filter.Scans is true. It may return rows that
	// are not in among.
	Scan(i int, among *roaring.Bitmap) (*roaring.Bitmap, error)
}

// Eval returns the live rows for which the filter is true, in a bitmap that belongs to the
// caller. The error is one of rows. It costs the reading of the indexes, one bitmap
// operation for each AND, OR, NOT and value, and reading the fields of items for Scans.
func (f *Filter) Eval(rows Rows) (*roaring.Bitmap, error) {
	found, err := f.root.eval(rows, rows.Live())
	if err != nil {
		return nil, err
	}
	return roaring.And(found, rows.Live()), nil
}

// An evaluator finds the rows in among for which a part of a filter is true. It may return rows
// outside of among, of which it says nothing. The bitmap may be shared and must not be written to.
type evaluator interface {
	eval(rows Rows, among *roaring.Bitmap) (*roaring.Bitmap, error)
}

// Evaluators of the nodes, and of tests: a test becomes an evalScan, or an evalOr of one evaluator for
// each label, range of values or bool. An evalOr may have no part, and is false then: an integer
// beyond all that can be stored is equal to none.
type (
	evalAnd      struct{ parts []evaluator } // at least two
	evalOr       struct{ parts []evaluator }
	evalNot      struct{ x evaluator }
	evalModality struct{ id int }
	evalLabelled struct{}
	evalLabel    struct{ name string }
	evalScan     struct{ number int }
	evalValued   struct{ field int }
	evalGrams    struct {
		field int
		grams []string // ascending, each once
	}
	evalInts struct {
		field int
		span  span[int64]
	}
	evalFloats struct {
		field int
		span  span[float64]
	}
	evalStrings struct {
		field int
		r     Range
	}
	evalBools struct {
		field int
		value bool
	}
)

// eval stops at the first part that leaves no row: the indexes of the other parts need
// not be read.
func (e evalAnd) eval(rows Rows, among *roaring.Bitmap) (*roaring.Bitmap, error) {
	for _, p := range e.parts {
		found, err := p.eval(rows, among)
		if err != nil {
			return nil, err
		}
		if among = roaring.And(among, found); among.IsEmpty() {
			break
		}
	}
	return among, nil
}

func (e evalOr) eval(rows Rows, among *roaring.Bitmap) (*roaring.Bitmap, error) {
	if len(e.parts) == 1 {
		return e.parts[0].eval(rows, among)
	}
	sum := roaring.New()
	for _, p := range e.parts {
		found, err := p.eval(rows, among)
		if err != nil {
			return nil, err
		}
		sum.Or(found)
	}
	return sum, nil
}

// eval takes the rows from all: NOT is true for a row that lacks the field.
func (e evalNot) eval(rows Rows, among *roaring.Bitmap) (*roaring.Bitmap, error) {
	found, err := e.x.eval(rows, among)
	if err != nil {
		return nil, err
	}
	return roaring.AndNot(among, found), nil
}

func (e evalModality) eval(rows Rows, _ *roaring.Bitmap) (*roaring.Bitmap, error) {
	return rows.Modality(e.id)
}

func (e evalLabelled) eval(rows Rows, _ *roaring.Bitmap) (*roaring.Bitmap, error) {
	return rows.Labelled()
}

func (e evalLabel) eval(rows Rows, _ *roaring.Bitmap) (*roaring.Bitmap, error) {
	return rows.Label(e.name)
}

func (e evalScan) eval(rows Rows, among *roaring.Bitmap) (*roaring.Bitmap, error) {
	return rows.Scan(e.number, among)
}

func (e evalGrams) eval(rows Rows, _ *roaring.Bitmap) (*roaring.Bitmap, error) {
	return rows.Grams(e.field, e.grams)
}

func (e evalValued) eval(rows Rows, _ *roaring.Bitmap) (*roaring.Bitmap, error) {
	return rows.Valued(e.field)
}

func (e evalStrings) eval(rows Rows, _ *roaring.Bitmap) (*roaring.Bitmap, error) {
	return rows.Strings(e.field, e.r)
}

func (e evalBools) eval(rows Rows, _ *roaring.Bitmap) (*roaring.Bitmap, error) {
	return rows.Bools(e.field, e.value)
}

func (e evalInts) eval(rows Rows, _ *roaring.Bitmap) (*roaring.Bitmap, error) {
	return rows.Ints(e.field, e.span.lo, e.span.hi)
}

func (e evalFloats) eval(rows Rows, _ *roaring.Bitmap) (*roaring.Bitmap, error) {
	return rows.Floats(e.field, e.span.lo, e.span.hi)
}

// A Scan is a test of a field without an index: it is true of some of the values. Rows reads the
// values of the field, and calls the method for its Type.
type Scan struct {
	Field int
	Type  Type
	Few   bool // an index of words says which rows to read

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
		i = sort.Search(len(s.strings),
			func(i int) bool { return s.strings[i].Open || string(x) < s.strings[i].Hi })
	}
	if i == len(s.strings) {
		return false
	}
	return s.strings[i].Has(x)
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
