package rows

import (
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

func TestParseValue(t *testing.T) {
	for _, c := range []struct {
		typ  db.FieldType
		s    string
		want any // nil: an error
	}{
		{db.String, " a ", " a "}, {db.Int, " -7 ", int64(-7)},
		{db.Int, "9007199254740993", int64(9007199254740993)},
		{db.Int, "1.5", nil}, {db.Int, "", nil}, {db.Int, "9223372036854775808", nil},
		{db.Float, "1e3", 1000.0}, {db.Float, "x", nil}, {db.Float, "1e999", nil},
		{db.Bool, "True", true}, {db.Bool, "0", false}, {db.Bool, "yes", nil}, {"date", "x", nil},
		{db.Time, " 2024-05-01 12:30 ", time.Date(2024, 5, 1, 12, 30, 0, 0, time.UTC)},
		{db.Time, "01.05.2024", nil}, {db.Time, "", nil},
	} {
		got, err := ParseValue(c.typ, c.s)
		if (err != nil) != (c.want == nil) || err == nil && got != c.want {
			t.Errorf("%s %q: %v, %v", c.typ, c.s, got, err)
		}
	}
}
