package db_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// Rows that come and go one at a time, far more often than layers may wait to be
// merged.
func TestFiltersAfterManySmallWrites(t *testing.T) {
	dbkit.LongTest(t)
	opts := &db.Options{FS: vfs.NewMem(), NoSync: true}
	d := dbkit.MustOpen(t, "db", opts)
	defer func() { d.Close() }()
	schema := filterSchema
	schema.Modalities, schema.Bits = nil, 8
	c := need(d.CreateCollection(ctx, "main", schema))(t)
	want := map[string]*db.Item{}
	r := seed.Rand(t, 3, 4)
	for i := range 12 * state.MaxLayers {
		key := fmt.Sprint(r.IntN(300))
		if r.IntN(3) == 0 {
			delete(want, key)
			need(c.Delete(ctx, key))(t)
		} else {
			want[key] = &db.Item{
				Key: key, Code: []byte{1}, Labels: []string{filterLabels[r.IntN(2)]},
				Fields: map[string]any{"n": int64(r.IntN(100) - 50), "s": fmt.Sprint("unique ", i), "b": r.IntN(2) == 0},
			}
			need(c.Put(ctx, want[key]))(t)
		}
		if i%200 != 0 {
			continue
		}
		if i%400 == 0 {
			dbkit.MustClose(t, d)
			d = dbkit.MustOpen(t, "db", opts)
			c = dbkit.MustCollection(t, d, "main")
		}
		for text, match := range map[string]func(*db.Item) bool{
			"label = 'a'":     func(it *db.Item) bool { return it.Labels[0] == "a" },
			"n >= -7":         func(it *db.Item) bool { return it.Fields["n"].(int64) >= -7 },
			"s > 'unique 5'":  func(it *db.Item) bool { return it.Fields["s"].(string) > "unique 5" },
			"NOT b = true":    func(it *db.Item) bool { return it.Fields["b"] == false },
			"n IN (1, 2, -3)": func(it *db.Item) bool { return slices.Contains([]int64{1, 2, -3}, it.Fields["n"].(int64)) },
		} {
			n := 0
			for _, it := range want {
				if match(it) {
					n++
				}
			}
			if got, err := c.CountWhere(ctx, text); err != nil || got != n {
				t.Fatalf("%s after %d writes: %d, %v, want %d", text, i, got, err, n)
			}
		}
	}
}

func TestIndexedStringsAreShort(t *testing.T) {
	d, _ := dbkit.OpenPairs(t)
	c := need(d.CreateCollection(ctx, "other", filterSchema))(t)
	long := strings.Repeat("x", db.MaxIndexedBytes)
	need(c.Put(ctx, &db.Item{Key: "k", Fields: map[string]any{"s": long, "note": long + "x"}}))(t)
	_, err := c.Put(ctx, &db.Item{Key: "k", Fields: map[string]any{"s": long + "x"}})
	if !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), `field "s" is indexed: a string in it has at most 1024 bytes, this one has 1025`) {
		t.Errorf("%v", err)
	}
	if n, err := c.CountWhere(ctx, "s = ?", long); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// An item whose record is damaged can be replaced and deleted, and filters do not
// find it by what it said before.
func TestDamagedItemsLeaveTheFilters(t *testing.T) {
	wrongType, err := (&codec.ItemRecord{Fields: []codec.Field{{ID: 1, Value: "no int"}}}).Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	unknownField := need((&codec.ItemRecord{Fields: []codec.Field{{ID: 99, Value: true}}}).Append(nil))(t)
	d, _ := dbkit.OpenPairs(t)
	c := need(d.CreateCollection(ctx, "other", filterSchema))(t)
	old := map[string]any{"n": int64(-5), "x": 0.0, "s": "old", "b": false}
	for i := range 6 {
		need(c.Put(ctx, &db.Item{Key: fmt.Sprint(i), Labels: []string{"a", "b"}, Fields: old}))(t)
	}
	damage := [][]byte{[]byte("damage"), wrongType, unknownField, []byte("damage"), nil}
	for row, b := range damage {
		key := codec.NumberKey(codec.KindItem, db.Inside(c).ID, uint32(row))
		if b == nil {
			err = db.State(d).Engine.DB.Delete(key, nil)
		} else {
			err = db.State(d).Engine.DB.Set(key, b, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Merge(ctx, &db.Item{Key: "1", Labels: []string{"c"}}); !errors.Is(err, db.ErrCorrupt) {
		t.Errorf("merge with a damaged item: %v", err)
	}
	for i := range 3 {
		need(c.Put(ctx, &db.Item{Key: fmt.Sprint(i), Labels: []string{"b", "c"}, Fields: map[string]any{"s": "new"}}))(t)
	}
	if n, err := c.Delete(ctx, "3", "4"); n != 2 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	for text, want := range map[string]int{
		"label = 'a'": 1, "label = 'b'": 4, "label = 'c'": 3, "s = 'old'": 1, "s = 'new'": 3, "s >= ''": 4,
		"n = -5": 1, "n < 100": 1, "x = 0": 1, "b = false": 1, "NOT b = false": 3,
	} {
		if n, err := c.CountWhere(ctx, text); n != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", text, n, err, want)
		}
	}
}

// Damage in a set is an error for who reads it and no one else.
func TestDamagedSetFailsAlone(t *testing.T) {
	d, _ := dbkit.OpenPairs(t)
	c := need(d.CreateCollection(ctx, "other", filterSchema))(t)
	need(c.Put(ctx, &db.Item{Key: "k", Labels: []string{"a", "b"}, Fields: map[string]any{"n": 5, "s": "x", "and": 1}}))(t)
	for _, key := range [][]byte{
		codec.RowsKey(db.Inside(c).ID, codec.SetLabel, 0, 0),
		codec.FieldRowsKey(db.Inside(c).ID, 1, 0, string([]byte{codec.SliceExists})),
		codec.FieldRowsKey(db.Inside(c).ID, 3, 0, "x"),
		codec.FieldRowsKey(db.Inside(c).ID, 5, 0, "\x00\x00"), // no slice
	} {
		must(t, db.State(d).Engine.DB.Set(key, []byte("damage"), nil))
	}
	if _, err := c.Put(ctx, &db.Item{Key: "l", Labels: []string{"a"}}); err != nil { // readers see the damage from here on
		t.Fatal(err)
	}
	for _, text := range []string{"label = 'a'", "n = 5", "s = 'x'", "s > ''", `"and" = 7`} {
		if n, err := c.CountWhere(ctx, text); !errors.Is(err, db.ErrCorrupt) {
			t.Errorf("%s: %d, %v", text, n, err)
		}
		if n, err := c.DeleteWhere(ctx, text); !errors.Is(err, db.ErrCorrupt) {
			t.Errorf("delete %s: %d, %v", text, n, err)
		}
	}
	if n, err := c.CountWhere(ctx, "label = 'b'"); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if it, err := c.Get(ctx, "k"); err != nil || it.Fields["s"] != "x" {
		t.Errorf("%+v, %v", it, err)
	}
}
