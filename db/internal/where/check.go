package where

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/internal/instant"
)

// A Type is the type of the values of a field. It decides which literals and operators a
// test may have.
type Type int

// The types of fields.
const (
	String Type = iota
	Int
	Float
	Bool
	Time // compared as integers, its microseconds
)

var typeText = [...]string{"string", "int", "float", "bool", "time"}

// A Field is a field as a Schema knows it.
type Field struct {
	ID      int
	Type    Type
	Indexed bool // Rows finds the rows of values; else it reads the values of all rows, see Scan
	Words   bool // of strings: Rows finds the rows of trigrams
}

// A Schema knows the names that an expression may use. An error of it becomes the Reason of
// an Error, at the column of the name.
type Schema interface {
	// Field returns the field with a name.
	Field(name string) (Field, error)
	// Modality returns the number of the modality with a name. The error speaks of fields, too:
	// it answers has(name) where there is neither.
	Modality(name string) (id int, err error)
}

// A Filter is an expression resolved against a schema. It is immutable, and goroutines
// may evaluate it together.
type Filter struct {
	root evaluator

	// Scans are the tests of fields without an index. Eval names them by their places here.
	Scans []Scan
}

// Check resolves the expression against a schema. The error is an *Error.
func (e *Expr) Check(s Schema) (*Filter, error) {
	c := checker{schema: s}
	root, err := c.check(e.root)
	if err != nil {
		return nil, err
	}
	return &Filter{root, c.scans}, nil
}

// A checker resolves the parts of an expression.
type checker struct {
	schema Schema
	scans  []Scan
}

// check resolves a part of an expression. With an error the evaluator is of no use.
func (c *checker) check(n node) (evaluator, error) {
	switch n := n.(type) {
	case *and:
		return c.checkAnd(n)
	case *or:
		parts, err := c.checkAll(n.parts)
		return evalOr{parts}, err
	case *not:
		x, err := c.check(n.x)
		return evalNot{x}, err
	case *has:
		return c.checkHas(n)
	case labelled:
		return evalLabelled{}, nil
	}
	t := n.(*test)
	if t.label {
		x, err := t.checkLabel()
		if t.not {
			x = evalNot{x}
		}
		return x, err
	}
	x, err := c.checkField(t)
	if err != nil || !t.not {
		return x, err
	}
	f, err := c.schema.Field(t.field)
	return evalAnd{[]evaluator{c.testOf(f, &Scan{any: true}, evalValued{f.ID}), evalNot{x}}}, err
}

// checkAnd resolves an AND. Parts that scan come last: they read only rows that the others leave.
func (c *checker) checkAnd(n *and) (evaluator, error) {
	var fast, slow []evaluator
	for _, p := range n.parts {
		before := len(c.scans)
		x, err := c.check(p)
		if err != nil {
			return nil, err
		}
		if len(c.scans) == before {
			fast = append(fast, x)
		} else {
			slow = append(slow, x)
		}
	}
	return evalAnd{append(fast, slow...)}, nil
}

// checkAll resolves parts, until one has an error.
func (c *checker) checkAll(nodes []node) ([]evaluator, error) {
	out := make([]evaluator, len(nodes))
	for i, n := range nodes {
		var err error
		if out[i], err = c.check(n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// checkHas resolves has(NAME), and NAME IS NOT NULL, which is of fields only.
func (c *checker) checkHas(n *has) (evaluator, error) {
	f, err := c.schema.Field(n.name)
	if err == nil {
		return c.testOf(f, &Scan{any: true}, evalValued{f.ID}), nil
	}
	if n.null {
		if _, other := c.schema.Modality(n.name); other == nil {
			err = fmt.Errorf("%s is a modality: IS NULL and IS NOT NULL are of fields, has(%s) is of modalities, too", n.name, n.name)
		}
		return nil, &Error{n.column, err.Error()}
	}
	id, err := c.schema.Modality(n.name)
	if err != nil {
		return nil, &Error{n.column, err.Error()}
	}
	return evalModality{id}, nil
}

// testOf returns the evaluator of a test of a field: indexed, or where the field is not a scan.
// An index of words comes before both: the scan then reads only the values that have all trigrams.
func (c *checker) testOf(f Field, scan *Scan, indexed evaluator) evaluator {
	if f.Words && len(scan.strings) == 1 {
		if grams := scan.strings[0].Match.grams(); len(grams) > 0 {
			scan.Few = true
			return evalAnd{[]evaluator{evalGrams{f.ID, grams}, c.scan(f, scan)}}
		}
	}
	if f.Indexed {
		return indexed
	}
	return c.scan(f, scan)
}

// scan returns the evaluator of a test that reads values.
func (c *checker) scan(f Field, scan *Scan) evaluator {
	scan.Field, scan.Type = f.ID, f.Type
	c.scans = append(c.scans, *scan)
	return evalScan{len(c.scans) - 1}
}

// checkLabel resolves a test of labels. A row may have several labels, so != is the NOT of =:
// no label is the value.
func (t *test) checkLabel() (evaluator, error) {
	if t.op != equal && t.op != notEqual && t.op != in {
		return nil, &Error{t.column, "label takes =, != and IN, not " + opText[t.op]}
	}
	var labels evalOr
	for _, v := range t.values {
		if v.kind != literalString {
			return nil, v.mismatch("label is compared with strings")
		}
		labels.parts = append(labels.parts, evalLabel{v.text})
	}
	if t.op == notEqual {
		return evalNot{labels}, nil
	}
	return labels, nil
}

// checkField resolves a test of a field into the ranges of values for which it is true. != is
// the ranges around the value, and no NOT, as it is false for rows without a value.
func (c *checker) checkField(t *test) (evaluator, error) {
	f, err := c.schema.Field(t.field)
	if err != nil {
		return nil, &Error{t.column, err.Error()}
	}
	if t.op >= like && f.Type != String {
		also := ""
		if f.Type == Time {
			also = "; a span of time is >= its begin AND < its end"
		}
		return nil, &Error{t.column, fmt.Sprintf("field %s is of type %s: %s is for strings%s", t.field,
			typeText[f.Type], opText[t.op], also)}
	}
	want, with := literalNumber, "numbers"
	switch f.Type {
	case String:
		want, with = literalString, "strings"
	case Bool:
		want, with = literalBool, "true and false"
	case Time:
		want, with = literalString, "times in quotes, as '2024-05-01' or '2024-05-01T12:30:00Z'"
	}
	for _, v := range t.values {
		if v.kind != want && !(f.Type == Time && v.kind == literalTime) {
			return nil, v.mismatch(fmt.Sprintf("field %s is of type %s: it is compared with %s", t.field,
				typeText[f.Type], with))
		}
	}
	var out evalOr
	var scan Scan
	switch f.Type {
	case String:
		if scan.strings, err = t.strings(); err != nil {
			return nil, err
		}
		for _, r := range scan.strings {
			out.parts = append(out.parts, evalStrings{f.ID, r})
		}
	case Int:
		scan.ints = spans(t, intSpans, nextInt)
		for _, r := range scan.ints {
			out.parts = append(out.parts, evalInts{f.ID, r})
		}
	case Time:
		for _, v := range t.values {
			_, err := instant.Parse(v.text)
			if err != nil && v.kind == literalTime {
				err = instant.ErrFar
			}
			if err != nil {
				return nil, &Error{v.column, fmt.Sprintf("field %s is of type time, and %s %v", t.field,
					v.name(), err)}
			}
		}
		scan.ints = spans(t, timeSpans, nextInt)
		for _, r := range scan.ints {
			out.parts = append(out.parts, evalInts{f.ID, r})
		}
	case Float:
		scan.floats = spans(t, floatSpans, nextFloat)
		for _, r := range scan.floats {
			out.parts = append(out.parts, evalFloats{f.ID, r})
		}
	case Bool:
		if t.op != equal && t.op != notEqual && t.op != in {
			return nil, &Error{t.column, fmt.Sprintf("field %s is of type bool: it takes = and !=, not %s",
				t.field, opText[t.op])}
		}
		for _, v := range t.values {
			value := (v.text == "true") == (t.op != notEqual)
			scan.bools[truth(value)] = true
			out.parts = append(out.parts, evalBools{f.ID, value})
		}
	}
	if len(out.parts) == 0 { // it is true of no value
		return out, nil
	}
	return c.testOf(f, &scan, out), nil
}

// mismatch returns the error of a literal of the wrong kind.
func (l literal) mismatch(about string) error {
	return &Error{l.column, about + ", not with " + l.name()}
}

// name names the literal in an error.
func (l literal) name() (name string) {
	if l.arg > 0 {
		name = fmt.Sprintf("argument %d, ", l.arg)
	}
	switch l.kind {
	case literalString:
		return name + "the string " + shorten(quote(l.text))
	case literalTime:
		return name + "the time " + shorten(l.text)
	case literalBool:
		return name + l.text
	}
	return name + "the number " + shorten(l.text)
}

// spans returns the values that a test of numbers admits, as few spans as possible and
// ascending: an IN with a thousand successive years is one span. of returns the spans of one
// value under an operator, next the value after another: spans that touch are joined, as each
// costs a comparison of bit slices.
func spans[T int64 | float64](t *test, of func(op, string) []span[T], next func(T) T) []span[T] {
	var list []span[T]
	if t.op == between {
		lo, hi := of(greaterEqual, t.values[0].text), of(lessEqual, t.values[1].text)
		if len(lo) == 0 || len(hi) == 0 || lo[0].lo > hi[len(hi)-1].hi {
			return nil
		}
		return []span[T]{{lo[0].lo, hi[len(hi)-1].hi}}
	}
	for _, v := range t.values {
		list = append(list, of(t.op, v.text)...)
	}
	slices.SortFunc(list, func(a, b span[T]) int { return cmp.Compare(a.lo, b.lo) })
	out := list[:0]
	for _, r := range list {
		if n := len(out); n > 0 && r.lo <= next(out[n-1].hi) {
			out[n-1].hi = max(out[n-1].hi, r.hi)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// A Range is the strings s with Lo <= s < Hi, in byte order; or if Open all strings from Lo
// on, whatever Hi is; and of these the ones that match. It is empty if Hi is not above Lo.
type Range struct {
	Lo, Hi string
	Open   bool
	Match  *Pattern // nil: all of them
}

// Has reports whether a string is in the range. It does not keep x.
func (r *Range) Has(x []byte) bool {
	return string(x) >= r.Lo && (r.Open || string(x) < r.Hi) && (r.Match == nil || r.Match.matches(x))
}

// Single reports whether the range holds Lo alone.
func (r Range) Single() bool { return !r.Open && r.Hi == after(r.Lo) }

// after returns the first string after s.
func after(s string) string { return s + "\x00" }

// strings returns the ranges of strings that a test admits, by ascending Lo; none touches another.
// Ranges of an IN are its values, each once.
func (t *test) strings() ([]Range, error) {
	var list []Range
	for _, v := range t.values {
		s := v.text
		switch t.op {
		case equal, in:
			list = append(list, Range{Lo: s, Hi: after(s)})
		case notEqual:
			list = append(list, Range{Hi: s}, Range{Lo: after(s), Open: true})
		case less:
			list = append(list, Range{Hi: s})
		case lessEqual:
			list = append(list, Range{Hi: after(s)})
		case greater:
			list = append(list, Range{Lo: after(s), Open: true})
		case greaterEqual:
			list = append(list, Range{Lo: s, Open: true})
		case between:
			if most := t.values[1].text; s <= most {
				list = append(list, Range{Lo: s, Hi: after(most)})
			}
			return list, nil
		case like, ilike, contains:
			r, err := v.matching(t.op)
			return []Range{r}, err
		}
	}
	slices.SortFunc(list, func(a, b Range) int { return cmp.Compare(a.Lo, b.Lo) })
	return slices.Compact(list), nil
}
