package where

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/internal/instant"
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
// without their quotes, = for ==, all else as it stands in the expression.
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
	for _, s := range []string{"!=", "<=", ">=", "==", "=", "<", ">", "(", ")", ",", "?"} {
		if strings.HasPrefix(l.rest, s) {
			if t.text = l.take(len(s)); s == "==" { // of other languages
				t.text = "="
			}
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

// Numbers stay text until it is known what they are compared with. An integer field is
// compared exactly: integerBound places any number, of any length and with a fraction, among
// the integers. A float field holds float64s, so the number is rounded to one. In both cases
// a test becomes spans that have exactly the values for which it is true.

// A bound is the place of a typed number among the 64-bit integers.
type bound struct {
	floor int64 // greatest integer not above the number, if out is 0
	whole bool  // the number is that integer
	out   int   // -1: below all 64-bit integers; 1: above all; 0: among them
}

// integerBound returns the place of a number, exactly for any digits. text must be a
// number of the lexer.
//
// Let D be its significant digits; without its sign the number is 0.D * 10^e. Its whole
// part is then the first e digits, at most 19 for a number of 64 bits, and it has a
// fraction if there are more digits.
func integerBound(text string) bound {
	negative := strings.HasPrefix(text, "-")
	text = strings.TrimLeft(text, "+-")
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	e := len(whole) - (len(whole) + len(fraction) - len(digits)) + parseExponent(exponent)
	digits = strings.TrimRight(digits, "0")
	switch {
	case digits == "":
		return bound{whole: true}
	case e > 19:
		if negative {
			return bound{out: -1}
		}
		return bound{out: 1}
	}
	b := bound{whole: e >= 0 && len(digits) <= e}
	magnitude := uint64(0) // below 10^19, which fits into 64 bits
	for i := range max(e, 0) {
		magnitude *= 10
		if i < len(digits) {
			magnitude += uint64(digits[i] - '0')
		}
	}
	switch {
	case !negative && magnitude > math.MaxInt64:
		return bound{out: 1}
	case !negative:
		b.floor = int64(magnitude)
	case magnitude > 1<<63 || magnitude == 1<<63 && !b.whole:
		return bound{out: -1}
	case b.whole:
		b.floor = -int64(magnitude) // also right for 1<<63, which is its own negative
	default:
		b.floor = -int64(magnitude) - 1
	}
	return b
}

// parseExponent reads an exponent. It cuts it off where the digits of a number of
// MaxBytes could not make up for it.
func parseExponent(s string) int {
	const most = 10 * MaxBytes
	n, err := strconv.Atoi(s)
	switch {
	case s == "":
		return 0
	case err != nil && strings.HasPrefix(s, "-"):
		return -most
	case err != nil:
		return most
	}
	return max(-most, min(n, most))
}

// A span is the values from lo to hi, both included. It is empty if lo is above hi.
type span[T int64 | float64] struct{ lo, hi T }

// intSpans returns the integers for which the comparison with a typed number is true: the
// number need not be an integer, nor fit into 64 bits. For IN it is that of =.
func intSpans(op op, text string) []span[int64] { return spansAround(op, integerBound(text)) }

// timeSpans is intSpans of the microseconds of a time, which instant.Parse can read. What is finer is cut
// off, as it is of values: so a time finds the item that it was put with.
func timeSpans(op op, text string) []span[int64] {
	micros, _ := instant.Parse(text)
	return spansAround(op, bound{floor: micros, whole: true})
}

// spansAround returns the integers for which the comparison with a number is true.
func spansAround(op op, b bound) []span[int64] {
	const least, most = math.MinInt64, math.MaxInt64
	if b.out != 0 {
		below := op == less || op == lessEqual
		above := op == greater || op == greaterEqual
		if op == notEqual || below && b.out > 0 || above && b.out < 0 {
			return []span[int64]{{least, most}}
		}
		return nil
	}
	var under, over []span[int64] // integers below and above the number
	last := b.floor               // the last integer below
	if !b.whole || last > least {
		if b.whole {
			last--
		}
		under = []span[int64]{{least, last}}
	}
	if b.floor < most {
		over = []span[int64]{{b.floor + 1, most}}
	}
	var same []span[int64]
	if b.whole {
		same = []span[int64]{{b.floor, b.floor}}
	}
	return chooseSpans(op, under, same, over)
}

// floatSpans returns the float64s for which the comparison with a number is true. The
// number is rounded to the nearest float64 first, beyond the largest to an infinity.
func floatSpans(op op, text string) []span[float64] {
	x, _ := strconv.ParseFloat(text, 64) // the only error is that it is out of range
	if x == 0 {
		x = 0 // not -0
	}
	least, most := math.Inf(-1), math.Inf(1)
	var under, over []span[float64]
	if x > least {
		under = []span[float64]{{least, math.Nextafter(x, least)}}
	}
	if x < most {
		over = []span[float64]{{math.Nextafter(x, most), most}}
	}
	return chooseSpans(op, under, []span[float64]{{x, x}}, over)
}

// nextInt and nextFloat return the value after x, or x if it is the last.
func nextInt(x int64) int64       { return max(x, x+1) }
func nextFloat(x float64) float64 { return math.Nextafter(x, math.Inf(1)) }

// chooseSpans joins the spans that an operator admits: of the values under a number, the same
// as it, and over it. IN is =.
func chooseSpans[T int64 | float64](op op, under, same, over []span[T]) []span[T] {
	switch op {
	case less:
		return under
	case lessEqual:
		return append(under, same...)
	case greater:
		return over
	case greaterEqual:
		return append(same, over...)
	case notEqual:
		return append(under, over...)
	}
	return same
}
