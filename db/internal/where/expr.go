package where

import "strings"

// An Expr is a parsed expression. It is immutable. Check makes a Filter of it.
type Expr struct{ root node }

// A node is a part of an expression: *and, *or, *not, *has, labelled or *test.
type node any

// An and is true if all of its parts are; an or is true if one part is. Both have at
// least two parts, none of their own kind: the parser joins nested ones.
type (
	and struct{ parts []node }
	or  struct{ parts []node }
	not struct{ x node }
)

// A has is true for rows that have a modality, or a value of a field.
type has struct {
	name   string // of the modality or field, as typed and without quotes
	column int    // of the name, for errors
	null   bool   // it was typed as IS NULL or IS NOT NULL, which take fields only
}

// A labelled is true for rows that have a label.
type labelled struct{}

// A test compares a field, or the labels, with values.
type test struct {
	label  bool      // it compares labels, not a field
	field  string    // name of the field, as typed and without quotes; "" for labels
	op     op        // how it compares
	values []literal // one value, or the values of IN; never empty
	column int       // of the name, for errors
}

// An op is the operator of a test. opText has the operators in the same order.
type op int

const (
	equal op = iota
	notEqual
	less
	lessEqual
	greater
	greaterEqual
	in
	like
)

var opText = [...]string{"=", "!=", "<", "<=", ">", ">=", "IN", "LIKE"}

// A literal is a value as the user has typed it, or an argument in the form in which it
// would be typed. A number stays text until Check knows what it is compared with, so that no
// digits are lost.
type literal struct {
	kind   literalKind
	text   string // of a string without quotes; of a bool true or false in lower case
	column int    // of its first character, or of its placeholder
	arg    int    // which argument it is, or is a value of, from 1; 0: it was typed
}

// A literalKind is the kind of a literal.
type literalKind int

const (
	literalNumber literalKind = iota
	literalString
	literalBool
	literalTime // an argument; its text is that of a string, and only fields of times are compared with it
)

// writeValues writes values with commas between them; a list stands in parentheses.
func writeValues(b *strings.Builder, values []literal, list bool) {
	if list {
		b.WriteByte('(')
	}
	for i, v := range values {
		if i > 0 {
			b.WriteString(", ")
		}
		v.write(b)
	}
	if list {
		b.WriteByte(')')
	}
}

func (l literal) write(b *strings.Builder) {
	if l.kind == literalString || l.kind == literalTime {
		b.WriteString(quote(l.text))
	} else {
		b.WriteString(l.text)
	}
}
