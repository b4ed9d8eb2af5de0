package where

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/internal/instant"
)

// MaxArgBytes bounds the length of all arguments of an expression, as they would be typed.
const MaxArgBytes = 1 << 20

// Spell returns arguments as they could be typed, with commas between them and slices in
// parentheses. Arguments that stand for the same values are spelt alike, whatever their Go
// types are: cursors depend on that. The error is about an argument that is no value.
func Spell(args []any) (string, error) {
	var b strings.Builder
	for i, arg := range args {
		values, list, err := literalsOf(i+1, arg)
		if err != nil {
			return "", err
		}
		if i > 0 {
			b.WriteString(", ")
		}
		writeValues(&b, values, list)
	}
	return b.String(), nil
}

// argument returns the values of the next argument, for the placeholder that the token is.
// Only behind IN may it be a list.
func (p *parser) argument(behindIn bool) ([]literal, error) {
	n := p.bound + 1
	if n > len(p.args) {
		return nil, &Error{p.token.column, fmt.Sprintf("placeholder %d has no argument", n)}
	}
	values, list, err := literalsOf(n, p.args[n-1])
	switch {
	case err != nil:
		return nil, &Error{p.token.column, err.Error()}
	case list && !behindIn:
		return nil, &Error{p.token.column, fmt.Sprintf("argument %d is a list, %T: only IN (?) takes one", n,
			p.args[n-1])}
	case list && len(values) == 0:
		return nil, &Error{p.token.column, fmt.Sprintf("argument %d is a list without values", n)}
	}
	for i := range values {
		values[i].column = p.token.column
		if p.argBytes += len(values[i].text) + 2; p.argBytes > MaxArgBytes {
			return nil, &Error{p.token.column,
				fmt.Sprintf("the arguments are too long: at most %d bytes are possible", MaxArgBytes)}
		}
	}
	p.bound = n
	return values, p.advance()
}

// unbound returns an error if arguments are left over at the end.
func (p *parser) unbound() error {
	if p.bound == len(p.args) {
		return nil
	}
	return &Error{p.token.column, fmt.Sprintf("placeholders (?): %d, arguments: %d; there have to be as many",
		p.bound, len(p.args))}
}

// literalsOf returns the values that argument n, from 1, stands for: one, or those of a list.
// Bytes are no list of numbers, as the caller mostly means a string.
func literalsOf(n int, arg any) (values []literal, list bool, err error) {
	v := reflect.ValueOf(arg)
	if kind := v.Kind(); kind == reflect.Slice || kind == reflect.Array {
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil, false, fmt.Errorf("argument %d is bytes, %T: convert them to a string", n, arg)
		}
		values = make([]literal, v.Len())
		for i := range values {
			x := v.Index(i)
			if x.Kind() == reflect.Interface {
				x = x.Elem()
			}
			if values[i], err = literalOf(x); err != nil {
				return nil, true, fmt.Errorf("argument %d, value %d: %w", n, i+1, err)
			}
			values[i].arg = n
		}
		return values, true, nil
	}
	l, err := literalOf(v)
	if err != nil {
		return nil, false, fmt.Errorf("argument %d: %w", n, err)
	}
	l.arg = n
	return []literal{l}, false, nil
}

// literalOf returns the literal that stands for exactly the value of a Go variable. Types
// that are made of strings, numbers and bools are accepted by their kind.
func literalOf(v reflect.Value) (literal, error) {
	number := func(text string) (literal, error) { return literal{kind: literalNumber, text: text}, nil }
	if v.IsValid() && v.CanInterface() {
		if text, is := instant.TextOf(v.Interface()); is {
			return literal{kind: literalTime, text: text}, nil
		}
	}
	switch {
	case !v.IsValid():
		return literal{}, fmt.Errorf("nil is no value")
	case v.CanInt():
		return number(strconv.FormatInt(v.Int(), 10))
	case v.CanUint():
		return number(strconv.FormatUint(v.Uint(), 10))
	case v.CanFloat():
		x := v.Float()
		if math.IsNaN(x) {
			return literal{}, fmt.Errorf("NaN is no value")
		}
		return number(spellFloat(x))
	case v.Kind() == reflect.String:
		if !utf8.ValidString(v.String()) {
			return literal{}, fmt.Errorf("the string is not UTF-8")
		}
		return literal{kind: literalString, text: v.String()}, nil
	case v.Kind() == reflect.Bool:
		return literal{kind: literalBool, text: strconv.FormatBool(v.Bool())}, nil
	}
	return literal{}, fmt.Errorf(
		"%v is no type of a value: strings, numbers, bools and times are possible, and slices of these behind IN", v.Type())
}

// spellFloat spells a number so that it compares as it is with integers, too. The shortest
// digits that give the number do, as long as the integers around it are float64s
// themselves; a greater number is an integer, of which all digits are written. An infinity
// is a number beyond all that can be stored.
func spellFloat(x float64) string {
	if math.IsInf(x, 0) {
		return strconv.FormatFloat(math.Copysign(1, x), 'f', 0, 64) + "e999"
	}
	if a := math.Abs(x); a >= 1<<53 && a <= 1<<64 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}
