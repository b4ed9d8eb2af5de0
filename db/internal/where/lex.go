package where

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A kind is the kind of a token.
type kind int

const (
	tokenEnd    kind = iota
	tokenName        // also keywords
	tokenQuoted      // a name in double quotes, never a keyword
	tokenNumber
	tokenString
	tokenSymbol // an operator, a parenthesis, a comma or a placeholder
)

// A token is one word of an expression. text is its value: strings and quoted names
// without their quotes, all else as it stands in the expression.
type token struct {
	kind   kind
	text   string
	column int // of its first character, from 1
}

// is reports whether the token is this symbol, or this keyword in any case.
func (t token) is(word string) bool {
	switch t.kind {
	case tokenSymbol:
		return t.text == word
	case tokenName:
		return strings.EqualFold(t.text, word)
	}
	return false
}

// String describes the token for a message.
func (t token) String() string {
	switch t.kind {
	case tokenEnd:
		return "the end"
	case tokenString:
		return "the string " + shorten(quote(t.text))
	case tokenQuoted:
		return "the name " + shorten(`"`+t.text+`"`)
	}
	return shorten(t.text)
}

// shorten keeps a quoted text in a message readable, and on one line.
func shorten(s string) string {
	const most = 40
	n := 0
	for i := range s {
		if n++; n > most {
			s = s[:i] + "..."
			break
		}
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// quote returns s as a string literal.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// keywords are no names of fields unless they are quoted.
var keywords = []string{"AND", "OR", "NOT", "IN", "label", "has", "true", "false"}

// isKeyword reports whether a name, without quotes, is a keyword in any case.
func isKeyword(s string) bool {
	for _, k := range keywords {
		if strings.EqualFold(s, k) {
			return true
		}
	}
	return false
}

// isStart and isPart accept the characters of names of fields.
func isStart(r rune) bool { return r == '_' || unicode.IsLetter(r) }
func isPart(r rune) bool  { return isStart(r) || r == '-' || r == '.' || unicode.IsDigit(r) }
func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// elsewhere are operators of other languages, with the advice for each.
var elsewhere = map[rune]string{'&': "write AND", '|': "write OR", '!': "write NOT, or != between two values"}

// A lexer cuts an expression into tokens. The expression is valid UTF-8.
type lexer struct {
	rest   string // text that is still to be read
	column int    // of the first character of rest
}

// peek returns the next character, or 0 at the end.
func (l *lexer) peek() rune {
	if l.rest == "" {
		return 0
	}
	r, _ := utf8.DecodeRuneInString(l.rest)
	return r
}

// take consumes n bytes, which must end at a character.
func (l *lexer) take(n int) string {
	s := l.rest[:n]
	l.rest = l.rest[n:]
	l.column += utf8.RuneCountInString(s)
	return s
}

// takeWhile consumes characters as long as f accepts them.
func (l *lexer) takeWhile(f func(rune) bool) string {
	if n := strings.IndexFunc(l.rest, func(r rune) bool { return !f(r) }); n >= 0 {
		return l.take(n)
	}
	return l.take(len(l.rest))
}

// next consumes white space and one token. At the end it returns tokens of kind tokenEnd. An
// error is about a character or a quoted text, and the lexer is of no use after it.
func (l *lexer) next() (token, error) {
	l.takeWhile(unicode.IsSpace)
	t := token{column: l.column}
	if l.rest == "" {
		return t, nil
	}
	switch r := l.peek(); {
	case isStart(r):
		t.kind, t.text = tokenName, l.takeWhile(isPart)
		return t, nil
	case r == '\'':
		text, ok := l.quoted('\'')
		if !ok {
			return t, &Error{t.column, "the string that begins here does not end: a ' is missing"}
		}
		t.kind, t.text = tokenString, text
		return t, nil
	case r == '"':
		text, ok := l.quoted('"')
		if !ok {
			return t, &Error{t.column, `the name that begins here does not end: a " is missing`}
		}
		t.kind, t.text = tokenQuoted, text
		return t, nil
	case isDigit(r), r == '.', r == '+', r == '-':
		t.kind = tokenNumber
		var err error
		t.text, err = l.number()
		return t, err
	}
	t.kind = tokenSymbol
	for _, s := range []string{"!=", "<=", ">=", "=", "<", ">", "(", ")", ",", "?"} {
		if strings.HasPrefix(l.rest, s) {
			t.text = l.take(len(s))
			return t, nil
		}
	}
	reason := fmt.Sprintf("unexpected character %q", l.peek())
	if instead, ok := elsewhere[l.peek()]; ok {
		reason += ": " + instead
	}
	return t, &Error{t.column, reason}
}

// quoted consumes a text in quotes, in which the quote itself is written twice. ok is
// false if the text does not end.
func (l *lexer) quoted(q byte) (text string, ok bool) {
	var b strings.Builder
	for i := 1; i < len(l.rest); i++ {
		if l.rest[i] != q {
			b.WriteByte(l.rest[i])
			continue
		}
		if i+1 < len(l.rest) && l.rest[i+1] == q {
			b.WriteByte(q)
			i++
			continue
		}
		l.take(i + 1)
		return b.String(), true
	}
	return "", false
}

// number consumes a number and returns it as it stands, so that it may have any number of
// digits. It must have a digit before the exponent and one in it, and no name may follow
// directly.
func (l *lexer) number() (string, error) {
	at, before := l.column, l.rest
	if r := l.peek(); r == '+' || r == '-' {
		l.take(1)
	}
	digits := len(l.takeWhile(isDigit))
	if l.peek() == '.' {
		l.take(1)
		digits += len(l.takeWhile(isDigit))
	}
	if r := l.peek(); digits > 0 && (r == 'e' || r == 'E') {
		l.take(1)
		if r := l.peek(); r == '+' || r == '-' {
			l.take(1)
		}
		digits = len(l.takeWhile(isDigit))
	}
	if digits == 0 || isPart(l.peek()) {
		l.takeWhile(isPart)
		return "", &Error{at, fmt.Sprintf("%s is not a number", shorten(before[:len(before)-len(l.rest)]))}
	}
	return before[:len(before)-len(l.rest)], nil
}
