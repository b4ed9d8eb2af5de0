package where

import "strings"

// An Expr is a parsed expression. It is immutable.
type Expr struct{ root node }

// A node is a part of an expression: *and, *or, *not, *has or *test.
type node interface {
	// write appends the node as a user would type it.
	write(b *strings.Builder)
}

// An and is true if all of its parts are; an or is true if one part is. Both have at
// least two parts, none of their own kind.
type (
	and struct{ parts []node }
	or  struct{ parts []node }
	not struct{ x node }
)

// A has tests for a modality.
type has struct {
	modality string
	column   int
}

// A test compares a field, or the labels, with values.
type test struct {
	label  bool   // it compares labels, not a field
	field  string // name of the field
	op     op
	values []literal // one value, or the values of IN
	column int
}

// An op is the operator of a test.
type op int

const (
	equal op = iota
	notEqual
	less
	lessEqual
	greater
	greaterEqual
	in
)

var opText = [...]string{"=", "!=", "<", "<=", ">", ">=", "IN"}

// A literal is a value as the user has typed it, or an argument in the form in which it
// would be typed.
type literal struct {
	kind   literalKind
	text   string // for a bool true or false
	column int
	arg    int // which argument it is, or is a value of, from 1; 0: none
}

type literalKind int

const (
	literalNumber literalKind = iota
	literalString
	literalBool
)

// String returns the expression as a user could type it, with the parentheses that it
// needs, and with values in place of placeholders. Parsing it gives the same expression.
func (e *Expr) String() string {
	var b strings.Builder
	e.root.write(&b)
	return b.String()
}

func (n *or) write(b *strings.Builder) {
	for i, p := range n.parts {
		if i > 0 {
			b.WriteString(" OR ")
		}
		p.write(b)
	}
}

func (n *and) write(b *strings.Builder) {
	for i, p := range n.parts {
		if i > 0 {
			b.WriteString(" AND ")
		}
		_, bracket := p.(*or)
		writeIn(b, p, bracket)
	}
}

func (n *not) write(b *strings.Builder) {
	b.WriteString("NOT ")
	bracket := false
	switch n.x.(type) {
	case *or, *and:
		bracket = true
	}
	writeIn(b, n.x, bracket)
}

// writeIn writes a node, in parentheses if bracket is set.
func writeIn(b *strings.Builder, n node, bracket bool) {
	if !bracket {
		n.write(b)
		return
	}
	b.WriteByte('(')
	n.write(b)
	b.WriteByte(')')
}

func (n *has) write(b *strings.Builder) {
	b.WriteString("has(")
	writeName(b, n.modality)
	b.WriteByte(')')
}

func (t *test) write(b *strings.Builder) {
	if t.label {
		b.WriteString("label")
	} else {
		writeName(b, t.field)
	}
	b.WriteString(" " + opText[t.op] + " ")
	writeValues(b, t.values, t.op == in)
}

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
	if l.kind == literalString {
		b.WriteString(quote(l.text))
	} else {
		b.WriteString(l.text)
	}
}

// writeName writes a name, in double quotes if it could be read as something else.
func writeName(b *strings.Builder, name string) {
	plain := name != "" && !isKeyword(name)
	for i, r := range name {
		if i == 0 && !isStart(r) || !isPart(r) {
			plain = false
		}
	}
	if plain {
		b.WriteString(name)
		return
	}
	b.WriteByte('"')
	b.WriteString(strings.ReplaceAll(name, `"`, `""`))
	b.WriteByte('"')
}
