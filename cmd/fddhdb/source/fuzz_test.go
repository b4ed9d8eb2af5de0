package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/forms"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/rows"
)

// Typed values and user files are refused with an explanation, or give what the database accepts.

func FuzzArguments(f *testing.F) {
	for _, s := range []string{"1,2,3", " -1e-40 , 0x1p3", "1,,2", "nan", "1e39", "3:1.5,17:2", ":",
		"5:0,5:1", "4294967296:1",
		"year:int", "year:int:index", "a:date", ":int", "at:time:index",
		"2024-05-01T12:30:00.123456789-07:00", "2024-05"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if x, err := ParseVector(s); err == nil && x.Sparse == nil {
			var again []string
			for _, v := range x.Dense {
				again = append(again, fmt.Sprint(v))
			}
			y, err := ParseVector(strings.Join(again, ","))
			if len(again) > 0 && (err != nil || !slices.Equal(x.Dense, y.Dense)) {
				t.Errorf("%q: %v became %v, %v", s, x, y, err)
			}
		} else if err == nil && !strings.HasPrefix(strings.TrimSpace(s), "{") {
			if x := x.Sparse; len(x.Index) != len(x.Value) || !slices.IsSorted(x.Index) ||
				len(slices.Compact(slices.Clone(x.Index))) != len(x.Index) {
				t.Errorf("%q: %v", s, x)
			}
		}
		if field, err := forms.ParseField(s); err == nil {
			again := field.Name + ":" + string(field.Type)
			if field.Indexed {
				again += ":index"
			}
			if again != s {
				t.Errorf("%q became %q", s, again)
			}
		}
		for _, typ := range []db.FieldType{db.String, db.Int, db.Float, db.Bool, db.Time} {
			v, err := rows.ParseValue(typ, s)
			if err != nil {
				continue
			}
			if again, err := rows.ParseValue(typ, term.Value(v)); err != nil || again != v && v == v {
				t.Errorf("%s %q: %v became %v, %v", typ, s, v, again, err)
			}
		}
	})
}
