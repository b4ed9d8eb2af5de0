package where

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// The right column is the expression that the first one stands for.
func TestArguments(t *testing.T) {
	type category string
	for _, c := range []struct {
		s    string
		args []any
		want string
	}{
		{`label = ? AND price < ?`, []any{"cat", 9.5}, `label = 'cat' AND price < 9.5`},
		{`label = ?`, []any{"it's ' OR label != '"}, `label = 'it''s '' OR label != '''`},
		{`label=?AND a=?`, []any{category("x?"), 1}, `label = 'x?' AND a = 1`},
		{`a = '?' AND "?" = ?`, []any{true}, `a = '?' AND "?" = true`},
		{`a = ? OR a = ? OR a = ? OR a = ?`, []any{int8(-1), uint64(math.MaxUint64), int64(math.MinInt64),
			time.Second},
			`a = -1 OR a = 18446744073709551615 OR a = -9223372036854775808 OR a = 1000000000`},
		{`a < ? AND b > ? AND c = ?`, []any{float64(1<<62 + 1024), .1, float32(.5)},
			`a < 4611686018427388928 AND b > 0.1 AND c = 0.5`},
		{`a >= ? AND a < ? AND a > ?`, []any{-1e300, math.Inf(1), math.Inf(-1)},
			`a >= -1e+300 AND a < 1e999 AND a > -1e999`},
		{`label IN (?)`, []any{[]string{"a", "b"}}, `label IN ('a', 'b')`},
		{`year IN (2019, ?, ?, 2030)`, []any{[]int{2020, 2021}, 2025},
			`year IN (2019, 2020, 2021, 2025, 2030)`},
		{`a IN (?)`, []any{[...]any{int64(1), 2.5}}, `a IN (1, 2.5)`},
	} {
		e, err := Parse(c.s, c.args...)
		if err != nil {
			t.Errorf("%s: %v", c.s, err)
			continue
		}
		if got := e.String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.s, got, c.want)
		}
	}
}

func TestArgumentsRefused(t *testing.T) {
	for _, c := range []struct {
		s      string
		args   []any
		column int
		says   string
	}{
		{`a = ?`, nil, 5, `placeholder 1 has no argument`},
		{`a = ? AND bb = ?`, []any{1}, 16, `placeholder 2 has no argument`},
		{`a = 1`, []any{1}, 6, `placeholders (?): 0, arguments: 1; there have to be as many`},
		{`a = ?`, []any{1, 2, 3}, 6, `placeholders (?): 1, arguments: 3;`},
		{`? = 1`, []any{"a"}, 1, `a field, label, has(NAME), NOT or ( is expected, not ?`},
		{`has(?)`, []any{"image"}, 5, `label or the name of a modality or field is expected, not ?`},
		{`a ? 1`, []any{"="}, 3, `not ?`},
		{`a = 1 AND b = ?`, []any{nil}, 15, `argument 1: nil is no value`},
		{`a = ?`, []any{math.NaN()}, 5, `argument 1: NaN is no value`},
		{`a = ?`, []any{"\xff"}, 5, `argument 1: the string is not UTF-8`},
		{`a = ?`, []any{time.Second.String}, 5, `argument 1: func() string is no type of a value`},
		{`a = ?`, []any{new(int)}, 5, `argument 1: *int is no type of a value`},
		{`a = ?`, []any{[]byte("x")}, 5, `argument 1 is bytes, []uint8: convert them to a string`},
		{`a = ?`, []any{[]int{1}}, 5, `argument 1 is a list, []int: only IN (?) takes one`},
		{`a IN (?)`, []any{[]int{}}, 7, `argument 1 is a list without values`},
		{`a IN (?)`, []any{[]any{1, nil}}, 7, `argument 1, value 2: nil is no value`},
		{`a IN (?)`, []any{[][]int{{1}}}, 7, `argument 1, value 1: []int is no type of a value`},
		{`a = ?`, []any{strings.Repeat("x", MaxArgBytes)}, 5, `the arguments are too long`},
		{`a IN (?)`, []any{make([]int, MaxArgBytes/2)}, 7, `the arguments are too long`},
	} {
		e, err := Parse(c.s, c.args...)
		var at *Error
		if !errors.As(err, &at) {
			t.Errorf("%s: %v, %v", c.s, e, err)
			continue
		}
		if at.Column != c.column || !strings.Contains(at.Reason, c.says) {
			t.Errorf("%s: %v, want column %d: ...%s", c.s, err, c.column, c.says)
		}
	}
}

// An argument of the wrong type is named by its number, as it may be far from the place.
func TestArgumentsOfTheWrongType(t *testing.T) {
	for _, c := range []struct {
		s, says string
		args    []any
	}{
		{`id = ? AND title = ?`, `field title is of type string: it is compared with strings, not with argument 2, the number 7`, []any{7, 7}},
		{`label IN (?)`, `label is compared with strings, not with argument 1, the number 1`,
			[]any{[]int{1}}},
		{`id > ?`, `field id is of type int: it is compared with numbers, not with argument 1, the string '7'`, []any{"7"}},
		{`id > ?`, `not with argument 1, true`, []any{true}},
	} {
		e, err := Parse(c.s, c.args...)
		if err != nil {
			t.Errorf("%s: %v", c.s, err)
			continue
		}
		if _, err := e.Check(anySchema{}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s", c.s, err, c.says)
		}
	}
}

func TestSpell(t *testing.T) {
	for _, c := range []struct {
		args []any
		want string
	}{
		{nil, ``},
		{[]any{"a', 'b", 7, true, []int{1, 2}}, `'a'', ''b', 7, true, (1, 2)`},
		{[]any{[]any{uint8(1), 2.0}, int64(7)}, `(1, 2), 7`},
	} {
		if got, err := Spell(c.args); got != c.want || err != nil {
			t.Errorf("%v: %s, %v; want %s", c.args, got, err, c.want)
		}
	}
	if _, err := Spell([]any{nil}); err == nil {
		t.Error("nil is spelt")
	}
}

// FuzzArgument: whatever an argument holds, it is one value, and the same one when the
// expression is printed and read again.
func FuzzArgument(f *testing.F) {
	f.Add("it's", int64(-1), .1)
	f.Add(`' OR label != '`, int64(math.MinInt64), 1e300)
	f.Add("?", int64(1<<53+1), float64(1<<63))
	f.Fuzz(func(t *testing.T, s string, n int64, x float64) {
		e, err := Parse("a = ? AND (b > ? OR NOT c IN (?))", s, n, []any{x, s})
		if err != nil {
			var at *Error
			if !errors.As(err, &at) || at.Column != 5 && at.Column != 31 {
				t.Fatalf("%#v", err)
			}
			return
		}
		parts := e.root.(*and).parts
		if got := parts[0].(*test).values; len(got) != 1 || got[0].text != s {
			t.Fatalf("%q is bound as %v", s, got)
		}
		if spans := intSpans(equal, parts[1].(*or).parts[0].(*test).values[0].text); len(spans) != 1 ||
			spans[0].lo != n {
			t.Fatalf("%d is bound as %v", n, spans)
		}
		if spans := floatSpans(equal, parts[1].(*or).parts[1].(*not).x.(*test).values[0].text); len(
			spans) != 1 || spans[0].lo != x {
			t.Fatalf("%g is bound as %v", x, spans)
		}
		if printed := e.String(); len(printed) <= MaxBytes {
			if again, err := Parse(printed); err != nil || spell(again.root) != spell(e.root) {
				t.Fatalf("%q is printed as %q: %v", s, printed, err)
			}
		}
	})
}
