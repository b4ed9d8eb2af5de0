package where

import (
	"cmp"
	"fmt"
	"slices"
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
)

var typeText = [...]string{"string", "int", "float", "bool"}

// A Schema knows the names that an expression may use. An error of it becomes the Reason of
// an Error, at the column of the name.
type Schema interface {
	// Field returns the number and type of a field that can be compared.
	Field(name string) (id int, t Type, err error)
	// Modality returns the number of a modality.
	Modality(name string) (id int, err error)
}

// A Filter is an expression resolved against a schema. It is immutable, and goroutines
// may evaluate it together.
type Filter struct{ root evaluator }

// Check resolves the expression against a schema. The error is an *Error.
func (e *Expr) Check(s Schema) (*Filter, error) {
	root, err := check(e.root, s)
	if err != nil {
		return nil, err
	}
	return &Filter{root}, nil
}

// check resolves a part of an expression. With an error the evaluator is of no use.
func check(n node, s Schema) (evaluator, error) {
	switch n := n.(type) {
	case *and:
		parts, err := checkAll(n.parts, s)
		return evalAnd{parts}, err
	case *or:
		parts, err := checkAll(n.parts, s)
		return evalOr{parts}, err
	case *not:
		x, err := check(n.x, s)
		return evalNot{x}, err
	case *has:
		id, err := s.Modality(n.modality)
		if err != nil {
			return nil, &Error{n.column, err.Error()}
		}
		return evalModality{id}, nil
	case labelled:
		return evalLabelled{}, nil
	}
	t := n.(*test)
	if t.label {
		return t.checkLabel()
	}
	return t.checkField(s)
}

// checkAll resolves parts, until one has an error.
func checkAll(nodes []node, s Schema) ([]evaluator, error) {
	out := make([]evaluator, len(nodes))
	for i, n := range nodes {
		var err error
		if out[i], err = check(n, s); err != nil {
			return nil, err
		}
	}
	return out, nil
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
func (t *test) checkField(s Schema) (evaluator, error) {
	id, typ, err := s.Field(t.field)
	if err != nil {
		return nil, &Error{t.column, err.Error()}
	}
	want, with := literalNumber, "numbers"
	switch typ {
	case String:
		want, with = literalString, "strings"
	case Bool:
		want, with = literalBool, "true and false"
	}
	for _, v := range t.values {
		if v.kind != want {
			return nil, v.mismatch(fmt.Sprintf("field %s is of type %s: it is compared with %s", t.field, typeText[typ], with))
		}
	}
	var out evalOr
	switch typ {
	case String:
		for _, r := range t.strings() {
			out.parts = append(out.parts, evalStrings{id, r})
		}
	case Int:
		for _, r := range spans(t, intSpans, nextInt) {
			out.parts = append(out.parts, evalInts{id, r})
		}
	case Float:
		for _, r := range spans(t, floatSpans, nextFloat) {
			out.parts = append(out.parts, evalFloats{id, r})
		}
	case Bool:
		if t.op != equal && t.op != notEqual && t.op != in {
			return nil, &Error{t.column, fmt.Sprintf("field %s is of type bool: it takes = and !=, not %s", t.field, opText[t.op])}
		}
		for _, v := range t.values {
			out.parts = append(out.parts, evalBools{id, (v.text == "true") == (t.op != notEqual)})
		}
	}
	return out, nil
}

// mismatch returns the error of a literal of the wrong kind.
func (l literal) mismatch(about string) error {
	about += ", not with "
	if l.arg > 0 {
		about += fmt.Sprintf("argument %d, ", l.arg)
	}
	switch l.kind {
	case literalString:
		return &Error{l.column, about + "the string " + shorten(quote(l.text))}
	case literalBool:
		return &Error{l.column, about + l.text}
	}
	return &Error{l.column, about + "the number " + shorten(l.text)}
}

// spans returns the values that a test of numbers admits, as few spans as possible and
// ascending: an IN with a thousand successive years is one span. of returns the spans of one
// value under an operator, next the value after another: spans that touch are joined, as each
// costs a comparison of bit slices.
func spans[T int64 | float64](t *test, of func(op, string) []span[T], next func(T) T) []span[T] {
	var list []span[T]
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
// on, whatever Hi is. It is empty if Hi is not above Lo.
type Range struct {
	Lo, Hi string
	Open   bool
}

// Single reports whether the range holds Lo alone.
func (r Range) Single() bool { return !r.Open && r.Hi == after(r.Lo) }

// after returns the first string after s.
func after(s string) string { return s + "\x00" }

// strings returns the ranges of strings that a test admits, by ascending Lo. Ranges of an IN
// are its values, each once.
func (t *test) strings() []Range {
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
		}
	}
	slices.SortFunc(list, func(a, b Range) int { return cmp.Compare(a.Lo, b.Lo) })
	return slices.Compact(list)
}
