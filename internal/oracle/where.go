package oracle

import (
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/fddhdb/fddhdb/db"
)

// Filters, evaluated by looking at an item: a second implementation of Query.Where. It
// accepts some expressions that the database refuses.

// A predicate tells whether an expression is true for an item.
type predicate func(*db.Item) bool

// Where reads an expression, and returns a function that tells whether it is true for an
// item. args are the values of its placeholders. The empty expression is true for all items.
func Where(text string, args []any, schema db.Schema) (func(*db.Item) bool, error) {
	if text == "" {
		return func(*db.Item) bool { return true }, nil
	}
	r := &reader{rest: text, args: args, schema: schema}
	r.next()
	p := r.or()
	if r.word != "" {
		r.fail("AND, OR or the end is expected, not %s", r.word)
	}
	if len(r.args) > 0 {
		r.fail("%d arguments are left over", len(r.args))
	}
	if r.err != nil {
		return nil, fmt.Errorf("where %.200s: %w", text, r.err)
	}
	return p, nil
}

// A reader reads an expression word by word. Its results after an error are not valid.
type reader struct {
	rest   string
	word   string // the current word as it is written; "" at the end
	args   []any  // values of the placeholders that are not read yet
	schema db.Schema
	err    error // the first error
}

// fail records an error and goes to the end, so that all callers stop.
func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	r.rest, r.word = "", ""
}

var words = regexp.MustCompile(
	`^(?:[\pL_][\pL_\p{Nd}.-]*|"(?:[^"]|"")*"|[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|'(?:[^']|'')*'|!=|<=|>=|==|[=<>(),?])`)

func (r *reader) next() {
	r.rest = strings.TrimLeftFunc(r.rest, unicode.IsSpace)
	r.word = words.FindString(r.rest)
	if r.word == "" && r.rest != "" {
		r.fail("nothing that begins with %.20q is expected", r.rest)
	}
	r.rest = r.rest[len(r.word):]
}

// skip consumes the current word if it equals word in any case.
func (r *reader) skip(word string) bool {
	if !strings.EqualFold(r.word, word) {
		return false
	}
	r.next()
	return true
}

func (r *reader) need(word string) {
	if !r.skip(word) {
		r.fail("%s is expected, not %q", word, r.word)
	}
}

// take returns the current word and reads the next one.
func (r *reader) take() string {
	word := r.word
	r.next()
	return word
}

func (r *reader) or() predicate {
	p := r.and()
	for r.skip("OR") {
		a, b := p, r.and()
		p = func(it *db.Item) bool { return a(it) || b(it) }
	}
	return p
}

func (r *reader) and() predicate {
	p := r.factor()
	for r.skip("AND") {
		a, b := p, r.factor()
		p = func(it *db.Item) bool { return a(it) && b(it) }
	}
	return p
}

func (r *reader) factor() predicate {
	switch {
	case r.skip("NOT"):
		p := r.factor()
		return func(it *db.Item) bool { return !p(it) }
	case r.skip("("):
		p := r.or()
		r.need(")")
		return p
	case r.skip("has"):
		r.need("(")
		if r.skip("label") {
			r.need(")")
			return func(it *db.Item) bool { return len(it.Labels) > 0 }
		}
		name := r.name()
		r.need(")")
		return func(it *db.Item) bool {
			_, valued := it.Fields[name]
			return valued || HasModality(it, name)
		}
	case strings.EqualFold(r.word, "label"):
		r.next()
		return r.labels()
	}
	return r.field()
}

// name returns the name that a word means.
func (r *reader) name() string {
	word := r.take()
	if strings.HasPrefix(word, `"`) {
		return strings.ReplaceAll(word[1:len(word)-1], `""`, `"`)
	}
	return word
}

// operator reads a comparison and its values.
func (r *reader) operator() (op string, values []string) {
	switch op = strings.ToUpper(r.take()); op {
	case "==":
		return "=", r.values()
	case "=", "!=", "<", "<=", ">", ">=":
		return op, r.values()
	case "IN":
	default:
		r.fail("a comparison is expected, not %q", op)
	}
	r.need("(")
	for {
		values = append(values, r.values()...)
		if !r.skip(",") {
			r.need(")")
			return op, values
		}
	}
}

// values returns the literal that the present word is, or the literals that the argument of
// a placeholder would be, and goes on.
func (r *reader) values() []string {
	word := r.take()
	if word != "?" {
		return []string{word}
	}
	if len(r.args) == 0 {
		r.fail("a placeholder has no argument")
		return nil
	}
	v := reflect.ValueOf(r.args[0])
	r.args = r.args[1:]
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return []string{literal(v)}
	}
	var list []string
	for i := range v.Len() {
		list = append(list, literal(v.Index(i)))
	}
	return list
}

// literal spells a Go value: of a number all digits.
func literal(v reflect.Value) string {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.CanInterface() {
		if t, is := v.Interface().(time.Time); is {
			return t.Format("'" + time.RFC3339Nano + "'")
		}
	}
	switch {
	case v.Kind() == reflect.String:
		return "'" + strings.ReplaceAll(v.String(), "'", "''") + "'"
	case v.CanFloat():
		return new(big.Float).SetFloat64(v.Float()).Text('f', 1100)
	}
	return fmt.Sprint(v)
}

func (r *reader) labels() predicate {
	not := r.skip("NOT")
	op, values := r.operator()
	if not && op == "IN" {
		op = "!="
	}
	for i, v := range values {
		values[i] = r.unquoted(v)
	}
	return func(it *db.Item) bool {
		has := slices.ContainsFunc(values, func(l string) bool { return slices.Contains(it.Labels, l) })
		return has != (op == "!=")
	}
}

// field reads a comparison with a field. It is false for items without the field.
func (r *reader) field() predicate {
	name := r.name()
	i := slices.IndexFunc(r.schema.Fields, func(f db.Field) bool { return f.Name == name })
	if i < 0 {
		r.fail("there is no field %q", name)
		return nil
	}
	if r.skip("IS") {
		want := r.skip("NOT")
		r.need("NULL")
		return func(it *db.Item) bool {
			_, ok := it.Fields[name]
			return ok == want
		}
	}
	not := r.skip("NOT")
	for _, op := range []string{"LIKE", "ILIKE", "CONTAINS"} {
		if r.skip(op) {
			matches := r.pattern(op, r.schema.Fields[i].Type)
			return func(it *db.Item) bool {
				x, ok := it.Fields[name]
				return ok && matches(x.(string)) != not
			}
		}
	}
	if r.skip("BETWEEN") {
		compare := func() func(any) int {
			values := r.values()
			if len(values) != 1 {
				r.fail("BETWEEN has two values")
				return nil
			}
			return r.comparison(r.schema.Fields[i].Type, values[0])
		}
		least := compare()
		r.need("AND")
		most := compare()
		return func(it *db.Item) bool {
			x, ok := it.Fields[name]
			return ok && (least(x) >= 0 && most(x) <= 0) != not
		}
	}
	op, values := r.operator()
	if not && op != "IN" {
		r.fail("NOT %s is unknown", op)
	}
	var tests []func(any) bool
	for _, v := range values {
		compare := r.comparison(r.schema.Fields[i].Type, v)
		tests = append(tests, func(x any) bool { return holds(op, compare(x)) })
	}
	return func(it *db.Item) bool {
		x, ok := it.Fields[name]
		return ok && slices.ContainsFunc(tests, func(test func(any) bool) bool { return test(x) }) != not
	}
}

// pattern reads a pattern of LIKE, ILIKE or CONTAINS as a regular expression.
func (r *reader) pattern(op string, typ db.FieldType) func(string) bool {
	values := r.values()
	if typ != db.String || len(values) != 1 {
		r.fail("%s compares strings with one pattern", op)
		return nil
	}
	text := r.unquoted(values[0])
	if op == "CONTAINS" {
		text = "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(text) + "%"
	}
	pattern := "^"
	if op != "LIKE" {
		pattern = "(?i)^"
	}
	escaped := false
	for _, c := range text {
		switch {
		case escaped, !strings.ContainsRune(`%_\`, c):
			pattern, escaped = pattern+regexp.QuoteMeta(string(c)), false
		case c == '%':
			pattern += "(?s:.*)"
		case c == '_':
			pattern += "(?s:.)"
		default:
			escaped = true
		}
	}
	matcher, err := regexp.Compile(pattern + "$")
	if err != nil {
		r.fail("pattern %s: %v", pattern, err)
		return nil
	}
	return matcher.MatchString
}

func holds(op string, sign int) bool {
	switch op {
	case "=", "IN":
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

// comparison returns a function that compares values of a type with a literal.
func (r *reader) comparison(typ db.FieldType, literal string) func(any) int {
	switch typ {
	case db.String:
		s := r.unquoted(literal)
		return func(x any) int { return strings.Compare(x.(string), s) }
	case db.Bool:
		is := strings.EqualFold(literal, "true")
		if !is && !strings.EqualFold(literal, "false") {
			r.fail("%s is neither true nor false", literal)
		}
		return func(x any) int {
			if x.(bool) == is {
				return 0
			}
			return 1
		}
	case db.Time:
		at := r.time(r.unquoted(literal)).Truncate(time.Microsecond)
		return func(x any) int { return x.(time.Time).Compare(at) }
	case db.Float: // the literal is rounded as values are, too large ones to infinity
		f, err := strconv.ParseFloat(literal, 64)
		if errors.Is(err, strconv.ErrSyntax) {
			r.fail("%s is no number", literal)
		}
		return func(x any) int {
			switch v := x.(float64); {
			case v < f:
				return -1
			case v > f:
				return 1
			}
			return 0
		}
	}
	number := r.exact(literal)
	return func(x any) int { return new(big.Rat).SetInt64(x.(int64)).Cmp(number) }
}

// time returns the time that a text is: the first layout that fits is the only one.
func (r *reader) time(text string) time.Time {
	for _, clock := range []string{"", " 15:04", " 15:04:05", "T15:04", "T15:04:05"} {
		for _, zone := range []string{"", "Z07:00", "-0700", "-07"} {
			if t, err := time.Parse("2006-01-02"+clock+zone, text); err == nil &&
				(clock != "" || zone == "") {
				return t
			}
		}
	}
	t, err := time.Parse("2006-01", text)
	if err != nil {
		t, err = time.Parse("2006", text)
	}
	if err != nil {
		r.fail("%s is no time", text)
	}
	return t
}

// exact returns a number. If its exponent is so large that only its sign matters, it
// returns one that compares with 64-bit integers in the same way.
func (r *reader) exact(literal string) *big.Rat {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(literal), "e")
	m, ok := new(big.Rat).SetString(mantissa)
	if !ok {
		r.fail("%s is no number", literal)
		return new(big.Rat)
	}
	far := len(mantissa) + 30 // the digits can move the point by so much
	e, err := strconv.Atoi(exponent)
	switch {
	case exponent == "" || m.Sign() == 0:
		return m
	case err != nil && strings.HasPrefix(exponent, "-") || err == nil && e < -far:
		return big.NewRat(int64(m.Sign()), 2)
	case err != nil || e > far:
		return new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(int64(m.Sign())), 100))
	}
	power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(e, -e))), nil))
	if e < 0 {
		power.Inv(power)
	}
	return m.Mul(m, power)
}

func (r *reader) unquoted(word string) string {
	if len(word) < 2 || word[0] != '\'' {
		r.fail("%s is no string", word)
		return ""
	}
	return strings.ReplaceAll(word[1:len(word)-1], "''", "'")
}

// HasModality reports whether an item has features of a modality.
func HasModality(it *db.Item, name string) bool {
	_, sparse := it.Sparse[name]
	return it.Vectors[name] != nil || sparse || slices.Contains(it.Modalities, name)
}
