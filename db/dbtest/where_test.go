package dbtest

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

// filtered returns a collection of items with everything that filters can test.
func filtered(t testing.TB) (*db.Collection, *Oracle) {
	t.Helper()
	d := Open(t, "", nil)
	c, err := d.CreateCollection(t.Context(), "main", db.Schema{
		Modalities: []db.Modality{{Name: "image", Dim: 1}, {Name: "and", Dim: 1}},
		Fields: []db.Field{
			{Name: "n", Type: db.Int, Indexed: true}, {Name: "x", Type: db.Float, Indexed: true},
			{Name: "s", Type: db.String, Indexed: true},
			{Name: "b", Type: db.Bool, Indexed: true}, {Name: "not", Type: db.Int},
			{Name: "at", Type: db.Time, Indexed: true},
		}})
	if err != nil {
		t.Fatal(err)
	}
	ints := []int64{math.MinInt64, -3, 0, 1, 2, 1 << 53, 1<<53 + 1, math.MaxInt64}
	floats := []float64{-math.MaxFloat64, -1.5, 0, 5e-324, .1, 1, 1e300}
	texts := []string{"", "a", "a\x00", "aa", "it's", "ä"}
	b := d.NewBatch()
	for i := range 60 {
		it := &db.Item{Key: fmt.Sprint(i), Fields: map[string]any{}}
		if i%3 > 0 {
			it.Fields["n"], it.Labels = ints[i%len(ints)], []string{texts[1+i%5]}
		}
		if i%4 > 0 {
			it.Fields["x"], it.Vectors = floats[i%len(floats)], map[string][]float32{"image": {1}}
		}
		if i%5 > 0 {
			it.Fields["s"], it.Fields["b"], it.Fields["at"] = texts[i%len(texts)], i%2 == 0,
				time.Date(2024, time.Month(i), 1, 0, 0, 0, 0, time.UTC)
		}
		if i%7 == 0 {
			it.Fields["not"], it.Vectors = int64(i), map[string][]float32{"and": {1}}
		}
		if err := b.Put(c, it); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	o, err := NewOracle(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return c, o
}

// The oracle reads every filter that the database accepts, and finds the same items.
func FuzzWhere(f *testing.F) {
	for _, text := range []string{
		"", "n = 1", "n != 1.5 or not n<2", `"not" >= 7 AND has("and")`,
		"x IN (.1, 1e400, -0, 1.) and b = TRUE", "s > 'a' aNd s<='it''s'",
		"label = 'a' OR (label != 'it''s' AND NOT has(image))", "label in ('ä','aa')",
		"n > 9007199254740992.5", "n < 1e-99999999999", "n >= -1e30",
		"n <= 9223372036854775807", "n = 1e0", "n IN (0.2e1,2,-9223372036854775808)", "x < 5e-324",
		"b != false", "not not n = 0", "((n=0))",
		"has(n) and s IS NULL", `"not" is not null`, `s LIKE 'a%'`, `s LIKE 'it''s%' OR s LIKE '%'`,
		`s LIKE '\%%'`, `s LIKE '%_''%' OR s NOT ILIKE 'A_%'`, `s CONTAINS 'T''S' OR s NOT CONTAINS 'ß'`,
		`n BETWEEN 0 AND 1.5 AND x NOT BETWEEN -1 AND 1e400`, `n == 1 OR label NOT IN ('a') OR s NOT IN ('b')`,
		"n = 1 n = 2", "n = 'a'", "and = 1", "x = ", "s = 'a", "has(image", "n IN ()", "label < 'a'",
		"0.0000000000000000000000000000000001e34 = n", "n = 1e-1e",
	} {
		f.Add(text)
	}
	c, o := filtered(f)
	f.Fuzz(func(t *testing.T, text string) {
		err := o.CheckWhere(t.Context(), text)
		if errors.Is(err, db.ErrInvalid) {
			return
		}
		n, said := c.Count(t.Context(), text)
		if said == nil && err != nil {
			t.Errorf("%s: the database counts %d, the oracle says %v", text, n, err)
		}
	})
}
