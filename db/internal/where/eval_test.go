package where

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/db/internal/words"
)

// anySchema has a field of nearly every name. Its type is string, unless the name begins with
// i, f or b. Modalities are image and text. Its fields have no indexes of values if scanned
// is set, and fields of strings have an index of words if words is set.
type anySchema struct{ scanned, words bool }

func (s anySchema) Field(name string) (Field, error) {
	switch {
	case slices.Contains([]string{"secret", "image", "text", "sound"}, name):
		return Field{}, errors.New("the fields are s, i, f and b")
	case strings.HasPrefix(name, "i"):
		return Field{ID: 1, Type: Int, Indexed: !s.scanned}, nil
	case strings.HasPrefix(name, "f"):
		return Field{ID: 2, Type: Float, Indexed: !s.scanned}, nil
	case strings.HasPrefix(name, "b"):
		return Field{ID: 3, Type: Bool, Indexed: !s.scanned}, nil
	}
	return Field{ID: 0, Type: String, Indexed: !s.scanned, Words: s.words}, nil
}

func (anySchema) Modality(name string) (int, error) {
	if i := slices.Index([]string{"image", "text"}, name); i >= 0 {
		return i, nil
	}
	return 0, errors.New("there are image and text")
}

// A table is Rows over a list of values, one a row; nil is no row.
type table struct {
	live   *roaring.Bitmap
	values []any
	labels map[string]*roaring.Bitmap
	images *roaring.Bitmap
	scans  []Scan // of the filter that is evaluated
}

func newTable(values []any) *table {
	t := &table{live: roaring.New(), values: values, labels: map[string]*roaring.Bitmap{},
		images: roaring.New()}
	for row, v := range values {
		if v != nil {
			t.live.Add(uint32(row))
		}
	}
	return t
}

func (t *table) rows(f func(v any) bool) (*roaring.Bitmap, error) {
	b := roaring.New()
	for row, v := range t.values {
		if v != nil && f(v) {
			b.Add(uint32(row))
		}
	}
	return b, nil
}

func (t *table) Live() *roaring.Bitmap { return t.live }

func (t *table) Label(name string) (*roaring.Bitmap, error) {
	if b := t.labels[name]; b != nil {
		return b, nil
	}
	return roaring.New(), nil
}

func (t *table) Labelled() (*roaring.Bitmap, error) {
	all := roaring.New()
	for _, b := range t.labels {
		all.Or(b)
	}
	return all, nil
}

func (t *table) Modality(id int) (*roaring.Bitmap, error) {
	if id == 0 {
		return t.images, nil
	}
	return roaring.New(), nil
}

func (t *table) Ints(field int, lo, hi int64) (*roaring.Bitmap, error) {
	return t.rows(func(v any) bool { x, ok := v.(int64); return ok && lo <= x && x <= hi })
}

func (t *table) Floats(field int, lo, hi float64) (*roaring.Bitmap, error) {
	return t.rows(func(v any) bool { x, ok := v.(float64); return ok && lo <= x && x <= hi })
}

func (t *table) Strings(field int, r Range) (*roaring.Bitmap, error) {
	return t.rows(func(v any) bool { x, ok := v.(string); return ok && r.Has([]byte(x)) })
}

func (t *table) Bools(field int, value bool) (*roaring.Bitmap, error) {
	return t.rows(func(v any) bool { x, ok := v.(bool); return ok && x == value })
}

// Grams adds the rows of texts of 20 bytes and more, as those of long texts.
func (t *table) Grams(field int, grams []string) (*roaring.Bitmap, error) {
	return t.rows(func(v any) bool {
		x, _ := v.(string)
		terms := words.Terms(x)
		return len(x) >= 20 || !slices.ContainsFunc(grams, func(g string) bool {
			return !slices.Contains(terms, string([]byte{words.Gram})+g)
		})
	})
}

// Valued takes fields by their types.
func (t *table) Valued(field int) (*roaring.Bitmap, error) {
	return t.rows(func(v any) bool { return fieldOf(v) == field })
}

func fieldOf(v any) int {
	switch v.(type) {
	case int64:
		return 1
	case float64:
		return 2
	case bool:
		return 3
	}
	return 0
}

// Scan adds all rows outside of among, which must not matter.
func (t *table) Scan(i int, among *roaring.Bitmap) (*roaring.Bitmap, error) {
	s := &t.scans[i]
	found, err := t.rows(func(v any) bool {
		if fieldOf(v) != s.Field {
			return false
		}
		switch v := v.(type) {
		case int64:
			return s.Int(v)
		case float64:
			return s.Float(v)
		case bool:
			return s.Bool(v)
		case string:
			return s.String([]byte(v))
		}
		return false
	})
	outside := roaring.New()
	outside.AddRange(0, uint64(len(t.values))+10)
	return roaring.Or(roaring.And(found, among), roaring.AndNot(outside, among)), err
}

func mustCheck(t require, s string) *Filter { return checkIn(t, anySchema{}, s) }

func checkIn(t require, schema anySchema, s string) *Filter {
	e, err := Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	f, err := e.Check(schema)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return f
}

type require interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// evaluate returns the rows of a filter, which are the same with indexes and without.
func evaluate(t require, s string, rows *table) []uint32 {
	var answers [3]*roaring.Bitmap
	for i := range answers {
		f := checkIn(t, anySchema{scanned: i > 0, words: i == 2}, s)
		rows.scans = f.Scans
		var err error
		if answers[i], err = f.Eval(rows); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	for _, other := range answers[1:] {
		if !answers[0].Equals(other) {
			t.Fatalf("%s: rows %v with indexes, %v without", s, answers[0].ToArray(), other.ToArray())
		}
	}
	return answers[0].ToArray()
}

func TestCheckRefuses(t *testing.T) {
	for _, c := range []struct {
		s      string
		column int
		says   string
	}{
		{`a = 'x' AND secret = 1`, 13, `the fields are s, i, f and b`},
		{`a = 'x' AND has(sound)`, 17, `there are image and text`},
		{`label = 5`, 9, `label is compared with strings, not with the number 5`},
		{`label IN ('a', true)`, 16, `label is compared with strings, not with true`},
		{`label < 'a'`, 1, `label takes =, != and IN, not <`},
		{`i = 'x'`, 5, `field i is of type int: it is compared with numbers, not with the string 'x'`},
		{`i IN (1, 2, 'x')`, 13, `with numbers, not with the string 'x'`},
		{`f > true`, 5, `field f is of type float: it is compared with numbers, not with true`},
		{`s = 1`, 5, `field s is of type string: it is compared with strings, not with the number 1`},
		{`b = 1`, 5, `field b is of type bool: it is compared with true and false, not with the number 1`},
		{`b < true`, 1, `field b is of type bool: it takes = and !=, not <`},
		{`has(secret)`, 5, `there are image and text`},
		{`secret IS NULL`, 1, `the fields are s, i, f and b`},
		{`image IS NOT NULL`, 1, `image is a modality: IS NULL and IS NOT NULL are of fields, has(image) is of modalities, too`},
		{`i LIKE 'x%'`, 1, `field i is of type int: LIKE is for strings`},
		{`label LIKE 'x%'`, 1, `label takes =, != and IN, not LIKE`},
		{`s LIKE 1`, 8, `it is compared with strings, not with the number 1`},
		{`s LIKE 'a\bc%'`, 8, `LIKE 'a\bc%': a \ stands before %, _ or another \`},
		{`s ILIKE '%\'`, 9, `ILIKE '%\': a \ stands before %, _ or another \`},
		{`s LIKE '%_` + strings.Repeat("x", 256) + `%'`, 8, `more than 256 characters, with a _ among them`},
		{`s LIKE '_` + strings.Repeat("x", 256) + `'`, 8, `more than 256 characters, with a _ among them`},
		{`b BETWEEN true AND false`, 1, `field b is of type bool: it takes = and !=, not BETWEEN`},
		{`i BETWEEN 1 AND 'x'`, 17, `with numbers, not with the string 'x'`},
		{`label BETWEEN 'a' AND 'b'`, 1, `label takes =, != and IN, not BETWEEN`},
		{`f CONTAINS 'x'`, 1, `field f is of type float: CONTAINS is for strings`},
		{`i NOT ILIKE 'x%'`, 1, `field i is of type int: ILIKE is for strings`},
		{`label CONTAINS 'x'`, 1, `label takes =, != and IN, not CONTAINS`},
		{`s CONTAINS 1`, 12, `it is compared with strings, not with the number 1`},
		{`NOT (s = 'x' OR b >= false)`, 17, `it takes = and !=, not >=`},
	} {
		e, err := Parse(c.s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Check(anySchema{})
		var at *Error
		if !errors.As(err, &at) || at.Column != c.column || !strings.Contains(at.Reason, c.says) {
			t.Errorf("%s: %v, want column %d: ...%s", c.s, err, c.column, c.says)
		}
	}
}

// compares returns the result of an operator for the sign of value against literal.
func compares(op string, sign int) bool {
	switch op {
	case "=":
		return sign == 0
	case "!=":
		return sign != 0
	case "<":
		return sign < 0
	case "<=":
		return sign <= 0
	case ">":
		return sign > 0
	}
	return sign >= 0
}

var ops = []string{"=", "!=", "<", "<=", ">", ">="}

// Integers compare like rational numbers.
func TestIntegersCompareExactly(t *testing.T) {
	values := []int64{
		math.MinInt64, math.MinInt64 + 1, -1<<53 - 1, -1 << 53, -1<<53 + 1, -2, -1, 0, 1, 2, 9, 10, 11,
		1<<53 - 1, 1 << 53, 1<<53 + 1, 1e18, math.MaxInt64 - 1, math.MaxInt64,
	}
	var list []any
	for _, v := range values {
		list = append(list, v)
	}
	rows := newTable(list)
	check := func(t require, literal string) {
		x, ok := new(big.Rat).SetString(strings.TrimSuffix(strings.Replace(literal, ".e", "e", 1), "."))
		if !ok {
			t.Fatalf("%s is not a number", literal)
		}
		for _, op := range ops {
			var want []uint32
			for row, v := range values {
				if compares(op, new(big.Rat).SetInt64(v).Cmp(x)) {
					want = append(want, uint32(row))
				}
			}
			if got := evaluate(t, "i "+op+" "+literal, rows); !slices.Equal(got, want) {
				t.Fatalf("i %s %s: rows %v, want %v", op, literal, got, want)
			}
		}
	}
	for _, literal := range []string{
		"0", "-0", "+0", "0.0", "-.0", "0e99", "1", "1.5", "-1.5", ".5", "-.5", "1.", "10.000", "1e1",
		"100e-1", "0.1e2", "1e-1", "1e-400",
		"9007199254740992", "9007199254740993", "9007199254740992.5", "9007199254740993.0000000000000000001",
		"-9007199254740993",
		"9223372036854775806.5", "9223372036854775807", "9223372036854775807.0", "9223372036854775807.5",
		"9223372036854775808",
		"-9223372036854775807.5", "-9223372036854775808", "-9223372036854775808.5", "-9223372036854775809",
		"922337203685477580.7e1",
		"1e18", "1e19", "1e20", "-1e19", "10000000000000000000", "99999999999999999999", "1e400", "-1e400",
		"000000000000000000000000000001",
		"0000000000000000000000000.00000000000000000000000000001e29",
	} {
		check(t, literal)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.StringMatching(
			`[+-]?([0-9]{1,20}(\.[0-9]{0,5})?|\.[0-9]{1,25})(e[+-]?[0-9]{1,2})?`).Draw(t, "literal"))
	})
	// big.Rat would take too long for these.
	for literal, want := range map[string][]uint32{
		"1e999999999999999999999": nil, "-1e999999999999999999999": evaluate(t, "i >= -1e30", rows),
		"1e-999999999999999999999":                    evaluate(t, "i > 0", rows),
		"0e999999999999999999999":                     evaluate(t, "i > 0", rows),
		"0." + strings.Repeat("0", 20000) + "5e20001": evaluate(t, "i > 5", rows),
		"5" + strings.Repeat("0", 20000) + "e-20000":  evaluate(t, "i > 5", rows),
	} {
		if got := evaluate(t, "i > "+literal, rows); !slices.Equal(got, want) {
			t.Errorf("i > %.40s...: rows %v, want %v", literal, got, want)
		}
	}
}

// Floats compare like Go's, with the literal as a float64.
func TestFloatsCompare(t *testing.T) {
	negative := math.Copysign(0, -1)
	values := []float64{
		-math.MaxFloat64, -1e300, -1.5, -1, -.1, -math.SmallestNonzeroFloat64, negative, 0,
		math.SmallestNonzeroFloat64,
		2.2250738585072014e-308, .1, 1, 1.5, 1 << 53, 1<<53 + 2, 1e300, math.MaxFloat64,
	}
	var list []any
	for _, v := range values {
		list = append(list, v)
	}
	rows := newTable(list)
	check := func(t require, literal string) {
		x, _ := strconv.ParseFloat(literal, 64)
		for _, op := range ops {
			var want []uint32
			for row, v := range values {
				sign := 0
				if v < x {
					sign = -1
				} else if v > x {
					sign = 1
				}
				if compares(op, sign) {
					want = append(want, uint32(row))
				}
			}
			if got := evaluate(t, "f "+op+" "+literal, rows); !slices.Equal(got, want) {
				t.Fatalf("f %s %s: rows %v, want %v", op, literal, got, want)
			}
		}
	}
	for _, literal := range []string{
		"0", "-0", "-0.0", ".1", "-.1", "1", "1.5", "5e-324", "-5e-324", "1e-400", "-1e-400",
		"2.2250738585072014e-308",
		"9007199254740993", "1e300", "1.7976931348623157e308", "1.7976931348623159e308", "1e400", "-1e400",
		"1e999999999999",
	} {
		check(t, literal)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, fmt.Sprint(rapid.Float64().Draw(t, "literal"))) })
}

func TestStringsCompareByBytes(t *testing.T) {
	values := []string{"", "\x00", "A", "B", "a", "a\x00", "a\x00b", "aa", "b", "it's", "z", "ä",
		"\U0001F600"}
	var list []any
	for _, v := range values {
		list = append(list, v)
	}
	rows := newTable(list)
	for _, literal := range append(values, "nobody", strings.Repeat("z", 5000)) {
		for _, op := range ops {
			var want []uint32
			for row, v := range values {
				if compares(op, strings.Compare(v, literal)) {
					want = append(want, uint32(row))
				}
			}
			s := "s " + op + " '" + strings.ReplaceAll(literal, "'", "''") + "'"
			if got := evaluate(t, s, rows); !slices.Equal(got, want) {
				t.Errorf("%q: rows %v, want %v", s, got, want)
			}
		}
	}
}

// LIKE finds what has a prefix.
func TestLikeFindsPrefixes(t *testing.T) {
	values := []string{"", "a", "a%", "a%b", "a\\", "a_", "aB", "ab", "abc", "b", "ä", "äb", "\U0010FFFF",
		"\U0010FFFF\U0010FFFF", "it's"}
	var list []any
	for _, v := range values {
		list = append(list, v)
	}
	rows := newTable(list)
	escaped := strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`, "'", "''")
	for _, prefix := range values {
		var want []uint32
		for row, v := range values {
			if strings.HasPrefix(v, prefix) {
				want = append(want, uint32(row))
			}
		}
		if got := evaluate(t, "s LIKE '"+escaped.Replace(prefix)+"%'", rows); !slices.Equal(got, want) {
			t.Errorf("prefix %q: rows %v, want %v", prefix, got, want)
		}
	}
}

// A row without a value matches no comparison; NOT is over live rows.
func TestMissingValues(t *testing.T) {
	rows := newTable([]any{int64(1), "x", nil, int64(2), true, 1.5})
	rows.labels["a"] = roaring.BitmapOf(0, 2, 3) // 2 is not live
	rows.images = roaring.BitmapOf(1, 2)
	for s, want := range map[string][]uint32{
		`i = 1`:                     {0},
		`i != 1`:                    {3},
		`NOT i = 1`:                 {1, 3, 4, 5},
		`NOT i != 1`:                {0, 1, 4, 5},
		`i < 2 OR i >= 2`:           {0, 3},
		`NOT (i < 2 OR i >= 2)`:     {1, 4, 5},
		`i IN (1, 2, 3)`:            {0, 3},
		`i IN (7)`:                  nil,
		`i = 1 AND i = 2`:           nil,
		`i = 1e30`:                  nil,
		`i < 1e30`:                  {0, 3},
		`NOT i < 1e30`:              {1, 4, 5},
		`label = 'a'`:               {0, 3},
		`label != 'a'`:              {1, 4, 5},
		`NOT label = 'a'`:           {1, 4, 5},
		`label = 'b'`:               nil,
		`label IN ('b', 'a')`:       {0, 3},
		`has(label)`:                {0, 3},
		`NOT has(label)`:            {1, 4, 5},
		`has(image)`:                {1},
		`NOT has(image)`:            {0, 3, 4, 5},
		`has(text)`:                 nil,
		`b = true`:                  {4},
		`b != true`:                 nil,
		`b != false`:                {4},
		`b IN (true, false)`:        {4},
		`s >= '' OR f > 1 OR i > 1`: {1, 3, 5},
		`f IN (1, 2)`:               nil,
		`f IN (1, 1.5, 2)`:          {5},
		`has(i)`:                    {0, 3},
		`NOT has(i)`:                {1, 4, 5},
		`i IS NULL`:                 {1, 4, 5},
		`i IS NOT NULL`:             {0, 3},
		`has(s) OR has(b)`:          {1, 4},
		`f is not null and f > 1`:   {5},
		`i IS NULL AND s IS NULL`:   {4, 5},
		`(label = 'a' AND i = 1) OR (i = 2 AND NOT i = 1)`: {0, 3},

		`i NOT IN (1, 5)`:                    {3},
		`NOT i NOT IN (1, 5)`:                {0, 1, 4, 5},
		`i NOT IN (7)`:                       {0, 3},
		`label NOT IN ('b', 'a')`:            {1, 4, 5},
		`i BETWEEN 2 AND 5`:                  {3},
		`i BETWEEN 1.5 AND 1e30`:             {3},
		`i BETWEEN 2 AND 1`:                  nil,
		`i NOT BETWEEN 2 AND 1`:              {0, 3},
		`i NOT BETWEEN 2 AND 5`:              {0},
		`i BETWEEN -1e30 AND 1`:              {0},
		`i BETWEEN 1e30 AND 1e31`:            nil,
		`f BETWEEN 1.5 AND 1.5`:              {5},
		`f BETWEEN 1.6 AND 1.5`:              nil,
		`s BETWEEN 'a' AND 'x'`:              {1},
		`s BETWEEN 'x' AND 'a'`:              nil,
		`s NOT BETWEEN 'y' AND 'z'`:          {1},
		`s LIKE 'x'`:                         {1},
		`s NOT LIKE 'x'`:                     nil,
		`s NOT LIKE 'y'`:                     {1},
		`s CONTAINS ''`:                      {1},
		`s NOT CONTAINS 'X'`:                 nil,
		`NOT s CONTAINS 'X'`:                 {0, 3, 4, 5},
		`s ILIKE 'X' AND NOT s NOT LIKE 'x'`: {1},
	} {
		if got := evaluate(t, s, rows); !slices.Equal(got, want) {
			t.Errorf("%s: rows %v, want %v", s, got, want)
		}
	}
}

// Results may be written to, whatever the filter.
func TestResultsAreTheirOwn(t *testing.T) {
	var list []any
	for i := range 200000 {
		list = append(list, int64(i))
	}
	rows := newTable(list)
	rows.labels["run"], rows.labels["array"], rows.labels["bitmap"] = roaring.New(), roaring.New(),
		roaring.New()
	rows.labels["run"].AddRange(0, 200000)
	rows.labels["run"].RunOptimize()
	for i := range uint32(200000) {
		if i%1000 == 0 {
			rows.labels["array"].Add(i)
		}
		if i%3 == 0 {
			rows.labels["bitmap"].Add(i)
		}
	}
	rows.images = rows.labels["bitmap"].Clone()
	shared := map[string]*roaring.Bitmap{"live": rows.live, "images": rows.images}
	for name, b := range rows.labels {
		shared[name] = b
	}
	before := map[string]*roaring.Bitmap{}
	for name, b := range shared {
		before[name] = roaring.BitmapOf(b.ToArray()...)
	}
	for _, s := range []string{
		"label = 'run'", "label = 'array'", "label = 'bitmap'", "has(image)", "NOT label = 'none'",
		"NOT NOT label = 'run'",
		"label IN ('run', 'array')", "label = 'run' AND label = 'run'", "label = 'bitmap' OR label = 'none'",
		"NOT label = 'run'",
	} {
		b, err := mustCheck(t, s).Eval(rows)
		if err != nil {
			t.Fatal(err)
		}
		b.Flip(0, 200000)
		b.AddRange(500, 70000)
		b.RemoveRange(0, 199000)
		for name, want := range before {
			if !shared[name].Equals(want) {
				t.Fatalf("after %s, %s has changed", s, name)
			}
		}
	}
}

type brokenRows struct {
	Rows
	err error
}

func (b brokenRows) Label(name string) (*roaring.Bitmap, error) {
	if name == "broken" {
		return nil, b.err
	}
	return b.Rows.Label(name)
}

// An error comes back, unless its part of the filter does not matter.
func TestEvalErrors(t *testing.T) {
	rows := brokenRows{newTable([]any{int64(1)}), errors.New("broken")}
	for _, s := range []string{
		"label = 'broken'", "NOT label = 'broken'", "i = 1 AND label = 'broken'", "label IN ('x', 'broken')",
		"i = 1 OR NOT (i = 2 OR label != 'broken')",
	} {
		if b, err := mustCheck(t, s).Eval(rows); err != rows.err {
			t.Errorf("%s: %v, %v", s, b, err)
		}
	}
	if b, err := mustCheck(t, "i = 2 AND label = 'broken'").Eval(rows); err != nil || !b.IsEmpty() {
		t.Errorf("behind nothing: %v, %v", b, err)
	}
}

// An IN over many successive numbers is one lookup.
func TestSpansAreFew(t *testing.T) {
	var list []string
	for i := range 1000 {
		list = append(list, strconv.Itoa((i*7)%1000))
	}
	e, err := Parse("i IN (" + strings.Join(list, ",") + ",5000,9223372036854775807,9223372036854775806)")
	if err != nil {
		t.Fatal(err)
	}
	got := spans(e.root.(*test), intSpans, nextInt)
	want := []span[int64]{{0, 999}, {5000, 5000}, {math.MaxInt64 - 1, math.MaxInt64}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if e, err = Parse("f IN (1, 1.5, 1, 2)"); err != nil {
		t.Fatal(err)
	}
	if got := spans(e.root.(*test), floatSpans, nextFloat); len(got) != 3 {
		t.Errorf("%v", got)
	}
}
