package program

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

// An Expr is a filter. It has a text for the database, and decides about an item of the
// model.
type Expr struct {
	// and, or, not; has, null, not null; =, !=, <, <=, >, >=, in, like, ilike, contains
	Op     string   `json:"op"`
	Field  string   `json:"field,omitempty"` // a field, or label; for has a modality, too
	Values []string `json:"values,omitempty"`
	Args   []Expr   `json:"args,omitempty"`
}

// String returns the text for the database.
func (e *Expr) String() string {
	return e.spell(func(e *Expr) string {
		var parts []string
		for _, v := range e.Values {
			if e.ofText() {
				v = "'" + strings.ReplaceAll(e.text(v), "'", "''") + "'"
			}
			parts = append(parts, v)
		}
		return strings.Join(parts, ", ")
	})
}

// Bound returns the expression with placeholders, and their values.
func (e *Expr) Bound() (where string, args []any) {
	where = e.spell(func(e *Expr) string {
		var list []any
		for _, v := range e.Values {
			list = append(list, e.argument(v))
		}
		if e.Op == "in" {
			args = append(args, list)
		} else {
			args = append(args, list...)
		}
		return "?"
	})
	return where, args
}

// argument returns the Go value of a literal.
func (e *Expr) argument(text string) any {
	if e.ofText() {
		return e.text(text)
	}
	if b, err := strconv.ParseBool(text); err == nil && len(text) > 1 {
		return b
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	x, _ := strconv.ParseFloat(text, 64)
	return x
}

// text returns the string that a value stands for: of like a pattern, with the value as the prefix, and of
// ilike with the value anywhere.
func (e *Expr) text(value string) string {
	value = literal(value)
	escaped := strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(value)
	switch e.Op {
	case "like":
		return escaped + "%"
	case "ilike":
		return "%" + strings.ToUpper(escaped) + "%"
	}
	return value
}

// ofText reports whether strings are compared.
func (e *Expr) ofText() bool {
	typ := TypeOf(e.Field)
	return e.Field == "label" || typ == db.String || typ == db.Time
}

// spell writes the expression, with what values says of the values of a comparison.
func (e *Expr) spell(values func(*Expr) string) string {
	if e == nil {
		return ""
	}
	switch e.Op {
	case "not":
		return "NOT (" + e.Args[0].spell(values) + ")"
	case "and", "or":
		var parts []string
		for i := range e.Args {
			parts = append(parts, "("+e.Args[i].spell(values)+")")
		}
		return strings.Join(parts, " "+strings.ToUpper(e.Op)+" ")
	case "has":
		return "has(" + e.Field + ")"
	case "null", "not null":
		return e.Field + " IS " + strings.ToUpper(e.Op)
	case "in":
		return e.Field + " IN (" + values(e) + ")"
	}
	return e.Field + " " + e.Op + " " + values(e)
}

// Valid reports whether a collection with this schema accepts the filter.
func (e *Expr) Valid(s *Schema) bool {
	if e == nil {
		return true
	}
	for i := range e.Args {
		if !e.Args[i].Valid(s) {
			return false
		}
	}
	switch {
	case e.Op == "has" && s.Has(e.Field):
		return true
	case len(e.Args) > 0 || e.Field == "label":
		return true
	}
	return slices.ContainsFunc(s.AllFields(), func(f db.Field) bool { return f.Name == e.Field })
}

// Everything is a schema with all fields and modalities that collections may have.
var Everything = db.Schema{Fields: slices.Concat(fields, MoreFields)}
