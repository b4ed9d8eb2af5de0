package metamorphic

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

// An Expr is a filter. It has a text for the database, and decides about an item of the
// model.
type Expr struct {
	Op     string   `json:"op"`              // and, or, not; has; =, !=, <, <=, >, >=, in
	Field  string   `json:"field,omitempty"` // a field, or label; for has a modality
	Values []string `json:"values,omitempty"`
	Args   []Expr   `json:"args,omitempty"`
}

// String returns the text for the database.
func (e *Expr) String() string {
	if e == nil {
		return ""
	}
	var parts []string
	switch e.Op {
	case "not":
		return "NOT (" + e.Args[0].String() + ")"
	case "and", "or":
		for i := range e.Args {
			parts = append(parts, "("+e.Args[i].String()+")")
		}
		return strings.Join(parts, " "+strings.ToUpper(e.Op)+" ")
	case "has":
		return "has(" + e.Field + ")"
	}
	for _, v := range e.Values {
		if e.Field == "label" || typeOf(e.Field) == db.String {
			v = "'" + strings.ReplaceAll(literal(v), "'", "''") + "'"
		}
		parts = append(parts, v)
	}
	if e.Op == "in" {
		return e.Field + " IN (" + strings.Join(parts, ", ") + ")"
	}
	return e.Field + " " + e.Op + " " + parts[0]
}

// valid reports whether a collection with this schema accepts the filter.
func (e *Expr) valid(s *Schema) bool {
	if e == nil {
		return true
	}
	for i := range e.Args {
		if !e.Args[i].valid(s) {
			return false
		}
	}
	switch {
	case e.Op == "has":
		return s.has(e.Field)
	case len(e.Args) > 0 || e.Field == "label":
		return true
	}
	return slices.ContainsFunc(s.allFields(), func(f db.Field) bool { return f.Name == e.Field && f.Indexed })
}

// match reports whether the filter is true of an item.
func (e *Expr) match(it *item) bool {
	if e == nil {
		return true
	}
	switch e.Op {
	case "and":
		return e.Args[0].match(it) && e.Args[1].match(it)
	case "or":
		return e.Args[0].match(it) || e.Args[1].match(it)
	case "not":
		return !e.Args[0].match(it)
	case "has":
		return it.vectors[e.Field] != nil
	}
	if e.Field == "label" {
		has := slices.ContainsFunc(e.Values, func(l string) bool { return slices.Contains(it.labels, l) })
		return has == (e.Op != "!=")
	}
	v, ok := it.fields[e.Field]
	if !ok {
		return false
	}
	if e.Op == "in" {
		return slices.ContainsFunc(e.Values, func(text string) bool { return compare(v, text) == 0 })
	}
	c := compare(v, e.Values[0])
	switch e.Op {
	case "=":
		return c == 0
	case "!=":
		return c != 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// compare compares a value of a field with a literal.
func compare(v any, text string) int {
	switch v := v.(type) {
	case int64:
		x, _ := new(big.Rat).SetString(text)
		return new(big.Rat).SetInt64(v).Cmp(x)
	case float64:
		switch x, _ := strconv.ParseFloat(text, 64); { // a number that is too large is infinite
		case v < x:
			return -1
		case v > x:
			return 1
		}
		return 0
	case string:
		return strings.Compare(v, literal(text))
	case bool:
		if v == (text == "true") {
			return 0
		}
		return 1
	}
	panic("no such type")
}
