package textform

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// ParseField parses NAME:TYPE[:index].
func ParseField(s string) (db.Field, error) {
	parts := strings.Split(s, ":")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" {
		return db.Field{}, errors.New("NAME:TYPE is expected, such as year:int")
	}
	f := db.Field{Name: parts[0], Type: db.FieldType(parts[1])}
	switch f.Type {
	case db.String, db.Int, db.Float, db.Bool, db.Time:
	default:
		return db.Field{}, fmt.Errorf("unknown type %q: string, int, float, bool and time are possible", parts[1])
	}
	if len(parts) == 3 {
		if parts[2] != "index" {
			return db.Field{}, fmt.Errorf("%q is unknown: a third part can only be index", parts[2])
		}
		f.Indexed = true
	}
	return f, nil
}

// DescribeMetric returns how vectors of a modality are compared, for the end of a list; "" by the
// cosine, in a space that it shares with none before it.
func DescribeMetric(m db.Modality) (text string) {
	if m.Metric != "" {
		text += ", by " + string(m.Metric)
	}
	if m.SpaceOf != "" {
		text += ", in the space of " + m.SpaceOf
	}
	return text
}

// DescribeSchema returns a schema in one line, for people.
func DescribeSchema(s db.Schema) string {
	var parts []string
	for _, m := range s.Modalities {
		sparse := ""
		if m.Sparse {
			sparse = ", sparse"
		}
		parts = append(parts, fmt.Sprintf("%s (%s%s%s)", m.Name, term.Plural(m.Dim, "dimension", "dimensions"), sparse, DescribeMetric(m)))
	}
	if s.Bits > 0 {
		parts = append(parts, fmt.Sprintf("codes of %d bits", s.Bits))
	}
	for _, f := range s.Fields {
		index := ""
		if f.Indexed {
			index = ", indexed"
		}
		parts = append(parts, fmt.Sprintf("field %s (%s%s)", f.Name, f.Type, index))
	}
	return strings.Join(parts, ", ")
}
