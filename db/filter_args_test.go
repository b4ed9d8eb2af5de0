package db_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/dbtest"
)

// filterable returns a trained collection, of which item i has number i and the label
// "it's" or "' OR label != '".
func filterable(t *testing.T) (*db.DB, *db.Collection) {
	t.Helper()
	d := dbtest.Open(t, "", nil)
	set := dbtest.Pairs{}
	schema := set.Schema()
	schema.Fields = append(schema.Fields,
		db.Field{Name: "price", Type: db.Float, Indexed: true}, db.Field{Name: "sold", Type: db.Bool, Indexed: true},
		db.Field{Name: "taken", Type: db.Time, Indexed: true})
	c := need(d.CreateCollection(t.Context(), "main", schema))(t)
	b, i := d.NewBatch(), 0
	for it := range set.Items(0, 120) {
		it.Labels = []string{"it's", "' OR label != '"}[i%2 : i%2+1]
		it.Fields["price"], it.Fields["sold"], it.Fields["taken"] = float64(i)/10, i%3 == 0, day.AddDate(0, 0, i)
		must(t, b.Put(c, it))
		i++
	}
	must(t, b.Commit(t.Context()))
	opt := db.TrainOptions{}
	opt.Bits, opt.Anchors = 16, 20
	need(c.Train(t.Context(), opt))(t)
	return d, c
}

// day is that on which the first item was taken, each other one a day later.
var day = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// Arguments take the place of values in every call that has an expression.
func TestFilterArguments(t *testing.T) {
	type money float64
	_, c := filterable(t)
	words := make([]float32, 10)
	words[3] = 1
	for _, q := range []db.Query{
		{Where: "label = ?", Args: []any{"it's"}},
		{Where: "label = ? AND price < ?", Args: []any{"' OR label != '", 3.5}},
		{Where: "number IN (?) AND NOT sold = ?", Args: []any{[]int{1, 2, 3, 4, 50}, true}},
		{Where: "number > ? AND price <= ? AND number != ?", Args: []any{uint8(7), money(4.4), 9.5}},
		{Where: "label = '?' OR number = ?", Args: []any{int64(5)}},
		{Where: "taken >= ? AND taken < ?", Args: []any{day.AddDate(0, 0, 7).In(time.FixedZone("", 7200)), "2024-01-31"}},
		{Where: "taken IN (?)", Args: []any{[]time.Time{day, day.AddDate(0, 0, 9), day.Add(1)}}},
	} {
		q.Key = "item 3"
		dbtest.CheckSearches(t, c, q)
		for _, from := range []string{"image", "text"} {
			q.From = from
			dbtest.CheckSearches(t, c, q)
		}
	}
	n, err := c.CountWhere(t.Context(), "price < ?", 1)
	if n != 10 || err != nil {
		t.Errorf("%d items, %v", n, err)
	}
	if n, err := c.CountUpTo(t.Context(), 3, "price < ?", 1); n != 3 || err != nil {
		t.Errorf("%d items of 3, %v", n, err)
	}
	e := db.Evaluation{Queries: map[string][][]float32{"image": {make([]float32, 16)}}, Labels: [][]string{{"it's"}}}
	e.Where, e.Args = "label = ?", []any{"it's"}
	found := need(c.Evaluate(t.Context(), e))(t)
	if len(found) == 0 || found[0].Hamming.MAP < .999 { // among relevant items only
		t.Errorf("%+v", found)
	}
	if n, err := c.DeleteWhere(t.Context(), "label = ? AND number >= ?", "it's", 60); n != 30 || err != nil {
		t.Errorf("%d deleted, %v", n, err)
	}
	if n, err := c.CountWhere(t.Context(), "label = ?", "it's"); n != 30 || err != nil {
		t.Errorf("%d left, %v", n, err)
	}
}

// What is wrong with an argument is said before anything is done, with its number.
func TestFilterArgumentsRefused(t *testing.T) {
	_, c := filterable(t)
	for _, test := range []struct {
		where string
		args  []any
		says  string
	}{
		{"label = ?", nil, "column 9: placeholder 1 has no argument"},
		{"label = ? OR label = ?", []any{"a"}, "column 22: placeholder 2 has no argument"},
		{"label = ?", []any{"a", "b"}, "placeholders (?): 1, arguments: 2;"},
		{"label = ? AND number = ?", []any{"a", "b"}, "field number is of type int: it is compared with numbers, not with argument 2, the string 'b'"},
		{"label = ?", []any{7}, "label is compared with strings, not with argument 1, the number 7"},
		{"price < ?", []any{math.NaN()}, "argument 1: NaN is no value"},
		{"taken > ?", []any{"soon"}, "field taken is of type time, and argument 1, the string 'soon' is no time: YYYY-MM-DD is one"},
		{"taken > ?", []any{time.Date(-20_000, 1, 1, 0, 0, 0, 0, time.UTC)}, "field taken is of type time, and argument 1, the time -20000-01-01T00:00:00Z is beyond the times"},
		{"taken > '2024-02-30'", nil, "column 9: field taken is of type time, and the string '2024-02-30' is no time"},
		{"taken > '10000-01-01'", nil, "the string '10000-01-01' is beyond the times that a field can have, those of the years 0 to 9999"},
		{"label = ?", []any{day}, "label is compared with strings, not with argument 1, the time 2024-01-01T00:00:00Z"},
		{"price < ?", []any{day}, "field price is of type float: it is compared with numbers, not with argument 1, the time 2024-01-01T00:00:00Z"},
		{"taken > 2024", nil, "field taken is of type time: it is compared with times in quotes, as '2024-05-01' or '2024-05-01T12:30:00Z', not with the number 2024"},
		{"taken LIKE '2024%'", nil, "field taken is of type time: LIKE is for strings; a span of time is >= its begin AND < its end"},
		{"label = ?", []any{[]string{"a"}}, "argument 1 is a list"},
		{"number IN (?)", []any{[]int{}}, "argument 1 is a list without values"},
		{"has(?)", []any{"image"}, "the name of a modality or field is expected"},
		{"", []any{1}, "there is no expression, and 1 arguments are given"},
	} {
		said := map[string]error{}
		_, said["count"] = c.CountWhere(t.Context(), test.where, test.args...)
		if test.where != "" {
			_, said["delete"] = c.DeleteWhere(t.Context(), test.where, test.args...)
		}
		_, said["search"] = c.Search(t.Context(), db.Query{Key: "item 1", Where: test.where, Args: test.args})
		_, said["evaluate"] = c.Evaluate(t.Context(), db.Evaluation{Queries: map[string][][]float32{"text": {make([]float32, 10)}},
			Labels: [][]string{{"a"}}, Where: test.where, Args: test.args})
		for _, err := range c.ItemsWhere(t.Context(), test.where, test.args...) {
			said["items"] = err
		}
		for what, err := range said {
			var at *db.WhereError
			if !errors.As(err, &at) || !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s where %q with %v: %v", what, test.where, test.args, err)
			}
		}
	}
	if n, err := c.Count(); n != 120 || err != nil {
		t.Errorf("%d items, %v", n, err)
	}
}

// A cursor belongs to a query with these arguments, whatever the Go types of the numbers.
func TestCursorWithArguments(t *testing.T) {
	_, c := filterable(t)
	q := db.Query{Key: "item 1", K: 5, Where: "number < ?", Args: []any{100}}
	first := need(c.Search(t.Context(), q))(t)
	q.After = first.Next
	q.Args = []any{int16(100)}
	second, err := c.Search(t.Context(), q)
	if err != nil || len(second.Hits) != 5 || second.Hits[0] == first.Hits[0] {
		t.Errorf("the same query: %v, %v", second, err)
	}
	q.Args = []any{101}
	if _, err := c.Search(t.Context(), q); !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "another query") {
		t.Errorf("other arguments: %v", err)
	}
	q.Args = []any{100}
	q.After = ""
	runs := need(c.SearchRadius(t.Context(), q, 16))(t)
	defer runs.Close()
	q.Args[0] = 7 // the caller's again
	some := need(runs.First(t.Context(), 5))(t)
	q.Args[0], q.After = 100, some.Next
	if _, err := c.Search(t.Context(), q); err != nil {
		t.Errorf("a cursor from runs: %v", err)
	}
}
