package db_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/oracle"
)

// Fields without an index are filtered by all the same, and Explain says which they are, in a copy
// without vectors, too.
func TestExplainNamesScannedFields(t *testing.T) {
	opts := &db.Options{FS: vfs.NewMem()}
	d := dbkit.MustOpen(t, "db", opts)
	t.Cleanup(func() { dbkit.MustClose(t, d) })
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t) // of which year is indexed
	items := dbkit.ViewItems(60, 1)
	for i, it := range items {
		it.Fields = map[string]any{"year": 2000 + i, "title": fmt.Sprint("title ", i), "price": float64(i)}
	}
	putAll(t, c, items)
	copied := dbkit.MustCollection(t, indexOnlyOf(t, d, opts), "main")
	for where, fields := range map[string][]string{
		"":                              nil,
		"year > 2010":                   nil,
		"title > 'title 3' OR year = 1": {"title"},
		"price < 20 AND title LIKE 'title 1%' AND year < 2015": {"title", "price"},
		"NOT has(new)": {"new"},
	} {
		is := need(oracle.Where(where, nil, dbkit.PairsSchema))(t)
		want, err := c.CountWhere(ctx, where)
		if err != nil || want == 0 {
			t.Fatalf("%s: %d, %v", where, want, err)
		}
		for range 2 { // the second time the rows are known
			e, res, err := c.Explain(ctx, db.Query{From: "text", To: "image", Key: "k0", K: 100, Where: where}, -1)
			if err != nil || !slices.Equal(e.ScannedFields, fields) {
				t.Errorf("%s: fields %v, %v, want %v", where, e.ScannedFields, err, fields)
			}
			for _, h := range res.Hits {
				if it, err := c.Get(ctx, h.Key); err != nil || !is(it) {
					t.Errorf("%s: hit %+v, %v", where, it, err)
				}
			}
		}
		if n, err := copied.CountWhere(ctx, where); err != nil || n != want {
			t.Errorf("%s: %d in the index-only copy, %v, want %d", where, n, err, want)
		}
	}
}

// Damage to a record fails the filters that have to read it, and no others.
func TestFiltersMeetDamagedItems(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	items := dbkit.ViewItems(60, 1)
	for i, it := range items {
		it.Labels, it.Fields = []string{"a"}, map[string]any{"year": i, "price": float64(i)}
	}
	putAll(t, c, items)
	wrong := need((&codec.ItemRecord{Fields: []codec.Field{{ID: 0, Value: int64(7)}, {ID: 2, Value: "7"}}}).Append(nil))(t)
	key := codec.NumberKey(codec.KindItem, db.Inside(c).ID, 7)
	for what, value := range map[string][]byte{"gone": nil, "damaged": []byte("damage"), "empty": {}, "of another type": wrong} {
		kv := db.State(d).Engine.DB
		err := kv.Set(key, value, pebble.NoSync)
		if what == "gone" {
			err = kv.Delete(key, pebble.NoSync)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Put(ctx, &db.Item{Key: "other"}); err != nil { // readers see the store as it is then
			t.Fatal(err)
		}
		if n, err := c.CountWhere(ctx, "price < 30"); !errors.Is(err, db.ErrCorrupt) || !strings.Contains(err.Error(), "item in row 7") {
			t.Errorf("%s: %d, %v", what, n, err)
		}
		if n, err := c.CountWhere(ctx, "year < 7 AND price < 30"); err != nil || n != 7 {
			t.Errorf("%s, other rows: %d, %v", what, n, err)
		}
	}
}
