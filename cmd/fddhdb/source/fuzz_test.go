package source

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
	"github.com/fddhdb/fddhdb/db"
)

// Typed values and user files are refused with an explanation, or give what the
// database accepts.

func FuzzFieldsFile(f *testing.F) {
	f.Add(false, []byte("n:int,s:string\n1,a\n\"\",\"b\n c\"\n"))
	f.Add(false, []byte("b:bool,x:float\r\ntrue,1e3\r\n0,nan\r\n"))
	f.Add(false, []byte("n:int\n\n1\n"))
	f.Add(false, []byte("n:int,n:int\n1,2\n"))
	f.Add(true, []byte("{\"n\": 9007199254740993, \"s\": \"x\"}\n{\"b\": null}\n"))
	f.Add(true, []byte("{\"x\": 1e400}\n[1]\n\n{}\n{\"s\": \"\\ud800\"}"))
	f.Add(true, []byte("{\"at\": \"2024-05-01 12:30+02\"}\n{\"at\": \"soon\"}\n{\"at\": 7}"))
	f.Add(false, []byte("t:time\n2024\n 2024-05-01 \n"))
	types := map[string]db.FieldType{"n": db.Int, "s": db.String, "x": db.Float, "b": db.Bool, "at": db.Time}
	f.Fuzz(func(t *testing.T, json bool, b []byte) {
		s := &Fields{file: "x", types: types}
		if json {
			s.splitJSON(b)
		} else if err := s.readCSV(b); err != nil {
			if !strings.HasPrefix(err.Error(), "x: ") {
				t.Errorf("%v does not name the file", err)
			}
			return
		}
		if s.Rows() > len(b) {
			t.Fatalf("%d rows in %d bytes", s.Rows(), len(b))
		}
		rows := 0
		for ; ; rows++ {
			item := NewRow()
			err := s.next(&item)
			if err == io.EOF {
				break
			}
			if bad := new(RowError); err != nil && !errors.As(err, &bad) {
				t.Fatalf("row %d: %v", rows, err)
			}
			if err != nil {
				continue
			}
			for name, v := range item.Fields {
				typ, known := types[name]
				if !json {
					i := slices.IndexFunc(s.Declared, func(f db.Field) bool { return f.Name == name })
					typ, known = s.Declared[i].Type, true
				}
				if is := map[string]db.FieldType{"int64": db.Int, "string": db.String, "float64": db.Float, "bool": db.Bool, "time.Time": db.Time}[fmt.Sprintf("%T", v)]; !known || is != typ {
					t.Errorf("field %q of type %q is %T", name, typ, v)
				}
			}
		}
		if rows != s.Rows() {
			t.Errorf("%d rows of %d", rows, s.Rows())
		}
	})
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{"1,2,3", " -1e-40 , 0x1p3", "1,,2", "nan", "1e39", "3:1.5,17:2", ":", "5:0,5:1", "4294967296:1",
		"year:int", "year:int:index", "a:date", ":int", "at:time:index", "2024-05-01T12:30:00.123456789-07:00", "2024-05"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if x, err := ParseVector(s); err == nil {
			var again []string
			for _, v := range x {
				again = append(again, fmt.Sprint(v))
			}
			y, err := ParseVector(strings.Join(again, ","))
			if err != nil || !slices.EqualFunc(x, y, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b }) {
				t.Errorf("%q: %v became %v, %v", s, x, y, err)
			}
		}
		if x, err := ParseSparse(s); err == nil {
			if len(x.Index) != len(x.Value) || !slices.IsSorted(x.Index) || len(slices.Compact(slices.Clone(x.Index))) != len(x.Index) {
				t.Errorf("%q: %v", s, x)
			}
		}
		if field, err := textform.ParseField(s); err == nil {
			again := field.Name + ":" + string(field.Type)
			if field.Indexed {
				again += ":index"
			}
			if again != s {
				t.Errorf("%q became %q", s, again)
			}
		}
		for _, typ := range []db.FieldType{db.String, db.Int, db.Float, db.Bool, db.Time} {
			v, err := ParseValue(typ, s)
			if err != nil {
				continue
			}
			if again, err := ParseValue(typ, term.Value(v)); err != nil || again != v && v == v {
				t.Errorf("%s %q: %v became %v, %v", typ, s, v, again, err)
			}
		}
	})
}
