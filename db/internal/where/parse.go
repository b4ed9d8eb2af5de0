package where

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits on an expression.
const (
	MaxBytes = 1 << 16 // length of an expression
	MaxDepth = 100     // nesting of parentheses and NOTs
)

// Parse reads an expression. Each placeholder (?) stands for the next argument, and there
// are as many of one as of the other. The arguments are only read, and not kept. The error
// is an *Error.
func Parse(s string, args ...any) (*Expr, error) {
	if len(s) > MaxBytes {
		return nil, &Error{1, fmt.Sprintf("%d bytes are too many, at most %d are possible", len(s), MaxBytes)}
	}
	if !utf8.ValidString(s) {
		valid := strings.ToValidUTF8(s, "")
		i := 0
		for i < len(valid) && valid[i] == s[i] {
			i++
		}
		return nil, &Error{utf8.RuneCountInString(s[:i]) + 1, "this is not UTF-8"}
	}
	p := parser{lexer: lexer{rest: s, column: 1}, args: args}
	if err := p.advance(); err != nil {
		return nil, err
	}
	root, err := p.or(0)
	if err != nil {
		return nil, err
	}
	if p.token.kind != tokenEnd {
		return nil, p.expected("AND, OR or the end")
	}
	if err := p.unbound(); err != nil {
		return nil, err
	}
	return &Expr{root}, nil
}

// A parser descends the grammar recursively: or, and, factor, then has or test. Each of these
// begins at the current token and ends behind what it has read.
type parser struct {
	lexer    lexer // stands behind token
	token    token // the current one, which is still to be consumed
	args     []any // arguments, in order of their placeholders; only read
	bound    int   // number of placeholders that have been read
	argBytes int   // length of their arguments so far; see MaxArgBytes
}

// advance consumes the current token.
func (p *parser) advance() (err error) {
	p.token, err = p.lexer.next()
	return err
}

// expected returns an error that names what should come here.
func (p *parser) expected(what string) error {
	return &Error{p.token.column, fmt.Sprintf("%s is expected, not %v", what, p.token)}
}

// symbol consumes a symbol that must come here.
func (p *parser) symbol(s, what string) error {
	if !p.token.is(s) {
		return p.expected(what)
	}
	return p.advance()
}

// or reads parts joined by OR. depth counts the parentheses and NOTs around them.
func (p *parser) or(depth int) (node, error) {
	n := &or{}
	for {
		x, err := p.and(depth)
		if err != nil {
			return nil, err
		}
		if inner, ok := x.(*or); ok { // its parentheses make no difference
			n.parts = append(n.parts, inner.parts...)
		} else {
			n.parts = append(n.parts, x)
		}
		if !p.token.is("OR") {
			break
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	if len(n.parts) == 1 {
		return n.parts[0], nil
	}
	return n, nil
}

// and reads parts joined by AND.
func (p *parser) and(depth int) (node, error) {
	n := &and{}
	for {
		x, err := p.factor(depth)
		if err != nil {
			return nil, err
		}
		if inner, ok := x.(*and); ok {
			n.parts = append(n.parts, inner.parts...)
		} else {
			n.parts = append(n.parts, x)
		}
		if !p.token.is("AND") {
			break
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	if len(n.parts) == 1 {
		return n.parts[0], nil
	}
	return n, nil
}

// factor reads a NOT with its operand, an expression in parentheses, or a test. At MaxDepth
// it accepts no more NOT or parenthesis, which ends every recursion.
func (p *parser) factor(depth int) (node, error) {
	inside := p.token.is("NOT") || p.token.is("(")
	if inside && depth == MaxDepth {
		return nil, &Error{p.token.column,
			fmt.Sprintf("parentheses and NOTs stand inside each other more than %d deep", MaxDepth)}
	}
	switch {
	case p.token.is("NOT"):
		if err := p.advance(); err != nil {
			return nil, err
		}
		x, err := p.factor(depth + 1)
		if err != nil {
			return nil, err
		}
		return &not{x}, nil
	case p.token.is("("):
		if err := p.advance(); err != nil {
			return nil, err
		}
		x, err := p.or(depth + 1)
		if err != nil {
			return nil, err
		}
		return x, p.symbol(")", "AND, OR or )")
	case p.token.is("has"):
		return p.has()
	case p.token.kind == tokenQuoted, p.token.is("label"),
		p.token.kind == tokenName && !isKeyword(p.token.text):
		return p.test()
	}
	return nil, p.expected("a field, label, has(NAME), NOT or (")
}

// has reads has(NAME) or has(label). The current token is the keyword.
func (p *parser) has() (node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	if err := p.symbol("(", "( and the name of a modality or field"); err != nil {
		return nil, err
	}
	if p.token.is("label") {
		if err := p.advance(); err != nil {
			return nil, err
		}
		return labelled{}, p.symbol(")", ")")
	}
	n := &has{name: p.token.text, column: p.token.column}
	if p.token.kind != tokenQuoted && (p.token.kind != tokenName || isKeyword(p.token.text)) {
		return nil, p.expected("label or the name of a modality or field")
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	return n, p.symbol(")", ")")
}

// test reads a comparison, or IS NULL. The current token is the keyword label, or a name.
func (p *parser) test() (_ node, err error) {
	n := &test{field: p.token.text, column: p.token.column}
	if p.token.is("label") {
		n.label, n.field = true, ""
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.token.is("IS") {
		if n.label {
			return nil, &Error{p.token.column,
				"IS NULL is of fields: has(label) asks for items with labels, NOT has(label) for others"}
		}
		return p.null(&has{name: n.field, column: n.column, null: true})
	}
	const words = "IN, BETWEEN, LIKE, ILIKE"
	if n.not = p.token.is("NOT"); n.not {
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	known := false
	for i, s := range opText {
		if p.token.is(s) && (op(i) >= in || !n.not) {
			n.op, known = op(i), true
		}
	}
	switch {
	case !known && n.not:
		return nil, p.expected(words + " or CONTAINS")
	case !known:
		return nil, p.expected("=, !=, <, <=, >, >=, " + words + ", CONTAINS, NOT before these, or IS NULL")
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	switch n.op {
	case in:
	case between:
		return n, p.between(n)
	default:
		n.values, err = p.values(false)
		return n, err
	}
	if err := p.symbol("(", "( and values"); err != nil {
		return nil, err
	}
	for {
		v, err := p.values(true)
		if err != nil {
			return nil, err
		}
		n.values = append(n.values, v...)
		if !p.token.is(",") {
			return n, p.symbol(")", ", or )")
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
}

// between reads the two values of BETWEEN, with the AND between them.
func (p *parser) between(n *test) error {
	least, err := p.values(false)
	if err != nil {
		return err
	}
	if err := p.symbol("AND", "AND and the greatest value"); err != nil {
		return err
	}
	most, err := p.values(false)
	n.values = append(least, most...)
	return err
}

// null reads IS NULL or IS NOT NULL, which is n. The current token is IS. IS, NULL, BETWEEN, LIKE, ILIKE and
// CONTAINS are no keywords: where they stand no name may.
func (p *parser) null(n *has) (node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	var out node = &not{n}
	if p.token.is("NOT") {
		out = n
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	if !p.token.is("NULL") {
		return nil, p.expected("NULL or NOT NULL")
	}
	return out, p.advance()
}

// values reads a literal, or a placeholder, which may stand for several values behind IN.
func (p *parser) values(behindIn bool) ([]literal, error) {
	if p.token.is("?") {
		return p.argument(behindIn)
	}
	l, err := p.literal()
	return []literal{l}, err
}

// literal reads a typed value. A name in its place is the mistake of a user who has left out
// single quotes, and the error says so.
func (p *parser) literal() (literal, error) {
	l := literal{text: p.token.text, column: p.token.column}
	switch {
	case p.token.kind == tokenNumber:
		l.kind = literalNumber
	case p.token.kind == tokenString:
		l.kind = literalString
	case p.token.is("true"), p.token.is("false"):
		l.kind, l.text = literalBool, strings.ToLower(l.text)
	case p.token.kind == tokenName, p.token.kind == tokenQuoted:
		return l, p.expected("a number, a string in single quotes, true or false")
	default:
		return l, p.expected("a value")
	}
	return l, p.advance()
}

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
	not    bool      // NOT stands before op, which is in or one behind it
	op     op        // how it compares
	values []literal // one value, two of BETWEEN, or the values of IN; never empty
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
	between // two values, both included
	like
	ilike
	contains
)

var opText = [...]string{"=", "!=", "<", "<=", ">", ">=", "IN", "BETWEEN", "LIKE", "ILIKE", "CONTAINS"}

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

// An Error is an error in an expression, with its place.
type Error struct {
	Column int    // of the first wrong character, from 1; characters, not bytes
	Reason string // what is wrong, and mostly what is possible instead
}

// Error names the column and what is wrong there. Package search makes a fault.WhereError of
// it before a user sees it.
func (e *Error) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Reason) }
