package where

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	_ "github.com/fddhdb/fddhdb/internal/seed"
)

// The right column is the printed expression, with only the parentheses that it needs.
func TestParse(t *testing.T) {
	for _, c := range [][2]string{
		{`label = 'cat'`, `label = 'cat'`},
		{"label='cat'AND\tyear\nIN(2020,2021)", `label = 'cat' AND year IN (2020, 2021)`},
		{`label = 'cat' AND year IN (2020, 2021) AND NOT (price >= 10 OR has(image))`,
			`label = 'cat' AND year IN (2020, 2021) AND NOT (price >= 10 OR has(image))`},
		{`a=1 or b=2 and c=3`, `a = 1 OR b = 2 AND c = 3`},
		{`(a=1 or b=2) and c=3`, `(a = 1 OR b = 2) AND c = 3`},
		{`a=1 or (b=2 and c=3)`, `a = 1 OR b = 2 AND c = 3`},
		{`a=1 and (b=2 and (c=3))`, `a = 1 AND b = 2 AND c = 3`},
		{`a=1 or (b=2 or (c=3))`, `a = 1 OR b = 2 OR c = 3`},
		{`(((a=1)))`, `a = 1`},
		{`not a=1 and b=2`, `NOT a = 1 AND b = 2`},
		{`not (a=1 and b=2)`, `NOT (a = 1 AND b = 2)`},
		{`not not a=1`, `NOT NOT a = 1`},
		{`NoT (nOt(a=1))`, `NOT NOT a = 1`},
		{`a!=1 AND b<2 AND c<=3 AND d>4 AND e>=5`, `a != 1 AND b < 2 AND c <= 3 AND d > 4 AND e >= 5`},
		{`LABEL In ('x')`, `label IN ('x')`},
		{`label != ''`, `label != ''`},
		{`a = 'it''s'`, `a = 'it''s'`},
		{`a = ''''`, `a = ''''`},
		{"a = 'two\nlines'", "a = 'two\nlines'"},
		{`seen = TRUE or seen != False`, `seen = true OR seen != false`},
		{`a = -1 OR a = +1 OR a = .5 OR a = 5. OR a = 1e3 OR a = -1.50E-07`,
			`a = -1 OR a = +1 OR a = .5 OR a = 5. OR a = 1e3 OR a = -1.50E-07`},
		{`x>-1`, `x > -1`},
		{`größe.max-1_b > 2`, `größe.max-1_b > 2`},
		{`"and" = 1 AND "label" = 'x' AND "plain" = 2`, `"and" = 1 AND "label" = 'x' AND plain = 2`},
		{`"odd ""name""" = 1`, `"odd ""name""" = 1`},
		{`has( image )`, `has(image)`},
		{`HAS("image")`, `has(image)`},
		{`has("label")`, `has("label")`},
		{`not HAS( Label )`, `NOT has(label)`},
		{`a == 1`, `a = 1`},
		{`a between 1 and 2 and b Not Between 'x' and 'y'`, `a BETWEEN 1 AND 2 AND b NOT BETWEEN 'x' AND 'y'`},
		{`a contains 'x' or a not like 'y' or a ilike 'z'`,
			`a CONTAINS 'x' OR a NOT LIKE 'y' OR a ILIKE 'z'`},
		{`label NOT IN ('x', 'y') AND not a not in (1)`,
			`label NOT IN ('x', 'y') AND NOT a NOT IN (1)`},
		{`like like '%' AND between between 1 and 2`, `like LIKE '%' AND between BETWEEN 1 AND 2`},
	} {
		e, err := Parse(c[0])
		if err != nil {
			t.Errorf("%s: %v", c[0], err)
			continue
		}
		if got := e.String(); got != c[1] {
			t.Errorf("%s: printed as %s, want %s", c[0], got, c[1])
		}
		if again, err := Parse(c[1]); err != nil || again.String() != c[1] {
			t.Errorf("%s: parsed again: %v, %v", c[1], again, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat("(", MaxDepth+1) + "a=1" + strings.Repeat(")", MaxDepth+1)
	for _, c := range []struct {
		s      string
		column int
		says   string
	}{
		{``, 1, `a field, label, has(NAME), NOT or ( is expected, not the end`},
		{`   `, 4, `not the end`},
		{`a`, 2, `IN, BETWEEN, LIKE, ILIKE, CONTAINS, NOT before these, or IS NULL is expected, not the end`},
		{`a = `, 5, `a value is expected, not the end`},
		{`a === 1`, 5, `a value is expected, not =`},
		{`a BETWEEN 1`, 12, `AND and the greatest value is expected, not the end`},
		{`a BETWEEN 1, 2`, 12, `AND and the greatest value is expected, not ,`},
		{`a BETWEEN 1 AND`, 16, `a value is expected, not the end`},
		{`a NOT = 1`, 7, `IN, BETWEEN, LIKE, ILIKE or CONTAINS is expected, not =`},
		{`a NOT NOT IN (1)`, 7, `is expected, not NOT`},
		{`a <> 1`, 4, `a value is expected, not >`},
		{`a = 1 b = 2`, 7, `AND, OR or the end is expected, not b`},
		{`a = 1 AND`, 10, `not the end`},
		{`a = 1 AND AND b = 1`, 11, `a field, label, has(NAME), NOT or ( is expected, not AND`},
		{`OR a = 1`, 1, `not OR`},
		{`(a = 1`, 7, `AND, OR or ) is expected, not the end`},
		{`a = 1)`, 6, `AND, OR or the end is expected, not )`},
		{`()`, 2, `not )`},
		{`NOT`, 4, `not the end`},
		{`a IN 1`, 6, `( and values is expected, not 1`},
		{`a IN ()`, 7, `a value is expected, not )`},
		{`a IN (1,)`, 9, `a value is expected, not )`},
		{`a IN (1 2)`, 9, `, or ) is expected, not 2`},
		{`a IN (1`, 8, `, or ) is expected, not the end`},
		{`a IS`, 5, `NULL or NOT NULL is expected, not the end`},
		{`a IS NOT 5`, 10, `NULL or NOT NULL is expected, not 5`},
		{`a IS "NULL"`, 6, `NULL or NOT NULL is expected, not the name "NULL"`},
		{`label IS NULL`, 7, `IS NULL is of fields: has(label) asks for items with labels`},
		{`a LIKE ('x')`, 8, `a value is expected, not (`},
		{`a = cat`, 5, `a number, a string in single quotes, true or false is expected, not cat`},
		{`a = "cat"`, 5, `a string in single quotes, true or false is expected, not the name "cat"`},
		{`a = 'cat`, 5, `does not end: a ' is missing`},
		{`äöü = 'cat`, 7, `does not end`},
		{`"a = 1`, 1, `does not end: a " is missing`},
		{`'a' = 1`, 1, `not the string 'a'`},
		{`1 = a`, 1, `not 1`},
		{`a = 1x`, 5, `1x is not a number`},
		{`a = 1-2`, 5, `1-2 is not a number`},
		{`a = 1.2.3`, 5, `1.2.3 is not a number`},
		{`a = -`, 5, `- is not a number`},
		{`a = .`, 5, `. is not a number`},
		{`a = 1e`, 5, `1e is not a number`},
		{`a = e5`, 5, `not e5`},
		{`a = NaN`, 5, `not NaN`},
		{`a & b`, 3, `unexpected character '&'`},
		{`a = 1;`, 6, `unexpected character ';'`},
		{`!a = 1`, 1, `unexpected character '!'`},
		{`has image`, 5, `( and the name of a modality or field is expected, not image`},
		{`has()`, 5, `label or the name of a modality or field is expected, not )`},
		{`has('image')`, 5, `label or the name of a modality or field is expected, not the string 'image'`},
		{`has(image`, 10, `) is expected, not the end`},
		{`has = 1`, 5, `( and the name of a modality or field`},
		{`true = true`, 1, `not true`},
		{"a = '\xff'", 6, `this is not UTF-8`},
		{"é\xff", 2, `this is not UTF-8`},
		{`a ` + strings.Repeat("x", 100), 3, "not " + strings.Repeat("x", 40) + "..."},
		{"a = 1 '\x1b[2J'", 7, "not the string '\uFFFD[2J'"},
		{deep, MaxDepth + 1, `more than 100 deep`},
		{strings.Repeat("NOT ", MaxDepth+1) + "a=1", 4*MaxDepth + 1, `more than 100 deep`},
		{strings.Repeat("(", 60000), MaxDepth + 1, `more than 100 deep`},
		{strings.Repeat(" ", MaxBytes+1), 1, `65537 bytes are too many, at most 65536`},
	} {
		e, err := Parse(c.s)
		var at *Error
		if !errors.As(err, &at) {
			t.Errorf("%.60q: %v, %v", c.s, e, err)
			continue
		}
		if at.Column != c.column || !strings.Contains(at.Reason, c.says) {
			t.Errorf("%.60q: %v, want column %d: ...%s", c.s, err, c.column, c.says)
		}
	}
	if _, err := Parse(deep[1 : len(deep)-1]); err != nil {
		t.Errorf("%d parentheses: %v", MaxDepth, err)
	}
	long := strings.Repeat("a=1 OR ", (MaxBytes-3)/7) + "a=1"
	if e, err := Parse(long); err != nil || strings.Count(e.String(), "OR") != (MaxBytes-3)/7 {
		t.Errorf("a long one: %v", err)
	}
}

// drawNode makes an expression in the form of the parser.
func drawNode(t *rapid.T, depth int) node {
	what := rapid.IntRange(0, 5).Draw(t, "node")
	if depth == 0 {
		what %= 3
	}
	name := rapid.OneOf(
		rapid.SampledFrom([]string{"a", "year", "größe", "x.y-z_1", "and", "NOT", "Label", "has", "TRUE",
			"in"}),
		rapid.StringMatching(`[\pL_][\pL_0-9.-]{0,5}`),
		rapid.String(),
	)
	switch what {
	case 0:
		if rapid.Bool().Draw(t, "labelled") {
			return labelled{}
		}
		return &has{name: name.Draw(t, "modality"), null: rapid.Bool().Draw(t, "null")}
	case 1, 2:
		n := &test{label: rapid.Bool().Draw(t, "label")}
		n.op = op(rapid.IntRange(0, int(contains)).Draw(t, "op"))
		n.not = n.op >= in && rapid.Bool().Draw(t, "not")
		if !n.label {
			n.field = name.Draw(t, "field")
		}
		count := 1
		switch n.op {
		case in:
			count = rapid.IntRange(1, 3).Draw(t, "count")
		case between:
			count = 2
		}
		for range count {
			l := literal{kind: literalKind(rapid.IntRange(0, 2).Draw(t, "kind"))}
			switch l.kind {
			case literalNumber:
				l.text = rapid.StringMatching(
					`[+-]?([0-9]{1,20}\.?[0-9]{0,3}|\.[0-9]{1,3})([eE][+-]?[0-9]{1,4})?`).Draw(t, "number")
			case literalString:
				l.text = rapid.OneOf(rapid.String(), rapid.StringMatching(`['"()a]*`)).Draw(t, "string")
			case literalBool:
				l.text = rapid.SampledFrom([]string{"true", "false"}).Draw(t, "bool")
			}
			n.values = append(n.values, l)
		}
		return n
	case 3:
		return &not{drawNode(t, depth-1)}
	}
	var parts []node
	for range rapid.IntRange(2, 3).Draw(t, "parts") {
		p := drawNode(t, depth-1)
		_, isAnd := p.(*and)
		_, isOr := p.(*or)
		if isAnd && what == 4 || isOr && what == 5 {
			p = &not{p}
		}
		parts = append(parts, p)
	}
	if what == 4 {
		return &and{parts}
	}
	return &or{parts}
}

// spell writes a node without its columns.
func spell(n node) string {
	list := func(word string, parts []node) string {
		for _, p := range parts {
			word += " " + spell(p)
		}
		return "{" + word + "}"
	}
	switch n := n.(type) {
	case *and:
		return list("and", n.parts)
	case *or:
		return list("or", n.parts)
	case *not:
		return list("not", []node{n.x})
	case *has:
		return fmt.Sprintf("{has %q %v}", n.name, n.null)
	case labelled:
		return "{labelled}"
	}
	x := n.(*test)
	s := fmt.Sprintf("{test %v %q %v %d", x.label, x.field, x.not, x.op)
	for _, v := range x.values {
		s += fmt.Sprintf(" %d%q", v.kind, v.text)
	}
	return s + "}"
}

func TestPrintedExpressionsParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := &Expr{drawNode(t, 4)}
		again, err := Parse(e.String())
		if err != nil {
			t.Fatalf("%s: %v", e, err)
		}
		if got, want := spell(again.root), spell(e.root); got != want {
			t.Fatalf("%s: parsed as\n%s, want\n%s", e, got, want)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`label = 'cat' AND year IN (2020, 2021) AND NOT (price >= 10 OR has(image))`,
		`"and" != -1.5e-7 or (a < 'it''s' and NOT NOT b = true)`, `((((`, `a = '`, "\xff", `has("x")`,
		`s LIKE 'a\_b%' AND (is IS NULL OR like is not null)`, `s LIKE '%'`, `s LIKE '\`,
		`s NOT ILIKE '%a_%%' AND i NOT BETWEEN 1 AND 5 OR NOT s CONTAINS 'K'`, `s LIKE '_%_' OR s == 'x'`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := Parse(s)
		if err != nil {
			var at *Error
			if !errors.As(err, &at) || at.Column < 1 || at.Column > utf8.RuneCountInString(s)+1 ||
				strings.Contains(at.Reason, "\n") {
				t.Fatalf("%#v", err)
			}
			return
		}
		printed := e.String()
		if len(printed) > MaxBytes {
			return // the added blanks do not fit
		}
		again, err := Parse(printed)
		if err != nil {
			t.Fatalf("%q is printed as %q: %v", s, printed, err)
		}
		if spell(again.root) != spell(e.root) {
			t.Fatalf("%q is printed as %q, which is another expression", s, printed)
		}
		filter, err := e.Check(anySchema{})
		if err != nil {
			return
		}
		if _, err := filter.Eval(newTable(nil)); err != nil {
			t.Fatal(err)
		}
	})
}
