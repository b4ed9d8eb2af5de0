package db_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/instant"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// Rows that come and go one at a time, far more often than layers may wait to be merged.
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
				Fields: map[string]any{"n": int64(r.IntN(100) - 50), "s": fmt.Sprint("unique ", i),
					"b": r.IntN(2) == 0},
			}
			need(c.Put(ctx, want[key]))(t)
		}
		if i%200 != 0 {
			continue
		}
		if i%400 == 0 {
			d, c = reopen(t, d, "db", opts)
		}
		for text, match := range map[string]func(*db.Item) bool{
			"label = 'a'":    func(it *db.Item) bool { return it.Labels[0] == "a" },
			"n >= -7":        func(it *db.Item) bool { return it.Fields["n"].(int64) >= -7 },
			"s > 'unique 5'": func(it *db.Item) bool { return it.Fields["s"].(string) > "unique 5" },
			"NOT b = true":   func(it *db.Item) bool { return it.Fields["b"] == false },
			"n IN (1, 2, -3)": func(it *db.Item) bool {
				return slices.Contains([]int64{1, 2, -3}, it.Fields["n"].(int64))
			},
		} {
			n := 0
			for _, it := range want {
				if match(it) {
					n++
				}
			}
			gives(t, n, text, i)(c.Count(ctx, text))
		}
	}
}

func TestIndexedStringsAreShort(t *testing.T) {
	d, _ := dbkit.OpenPairs(t)
	c := need(d.CreateCollection(ctx, "other", filterSchema))(t)
	long := strings.Repeat("x", db.MaxIndexedBytes)
	need(c.Put(ctx, &db.Item{Key: "k", Fields: map[string]any{"s": long, "note": long + "x"}}))(t)
	_, err := c.Put(ctx, &db.Item{Key: "k", Fields: map[string]any{"s": long + "x"}})
	failIf(t, !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(),
		`field "s" is indexed: a string in it has at most 1024 bytes, this one has 1025`), "%v", err)
	holds(t, c, 1, "s = ?", long)
}

// An item whose record is damaged can be replaced and deleted, and filters do not
// find it by what it said before.
func TestDamagedItemsLeaveTheFilters(t *testing.T) {
	wrongType, err := (&codec.ItemRecord{Fields: []codec.Field{{ID: 1, Value: "no int"}}}).Append(nil)
	must(t, err)
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
		must(t, err)
	}
	errorIs(t, errOf(c.Merge(ctx, &db.Item{Key: "1", Labels: []string{"c"}})), db.ErrCorrupt)
	for i := range 3 {
		need(c.Put(ctx, &db.Item{Key: fmt.Sprint(i), Labels: []string{"b", "c"},
			Fields: map[string]any{"s": "new"}}))(t)
	}
	gives(t, 2)(c.Delete(ctx, "3", "4"))
	for text, want := range map[string]int{
		"label = 'a'": 1, "label = 'b'": 4, "label = 'c'": 3, "s = 'old'": 1, "s = 'new'": 3, "s >= ''": 4,
		"n = -5": 1, "n < 100": 1, "x = 0": 1, "b = false": 1, "NOT b = false": 3,
	} {
		holds(t, c, want, text)
	}
}

// Damage in a set is an error for who reads it and no one else.
func TestDamagedSetFailsAlone(t *testing.T) {
	t.Parallel()
	d, _ := dbkit.OpenPairs(t)
	c := need(d.CreateCollection(ctx, "other", filterSchema))(t)
	need(c.Put(ctx, &db.Item{Key: "k", Labels: []string{"a", "b"},
		Fields: map[string]any{"n": 5, "s": "x", "and": 1}}))(t)
	for _, key := range [][]byte{
		codec.RowsKey(db.Inside(c).ID, codec.SetLabel, 0, 0),
		codec.FieldRowsKey(db.Inside(c).ID, 1, 0, string([]byte{codec.SliceExists})),
		codec.FieldRowsKey(db.Inside(c).ID, 3, 0, "x"),
		codec.FieldRowsKey(db.Inside(c).ID, 5, 0, "\x00\x00"), // no slice
	} {
		must(t, db.State(d).Engine.DB.Set(key, []byte("damage"), nil))
	}
	// readers see the damage from here on
	need(c.Put(ctx, &db.Item{Key: "l", Labels: []string{"a"}}))(t)
	for _, text := range []string{"label = 'a'", "n = 5", "s = 'x'", "s > ''", `"and" = 7`} {
		n, err := c.Count(ctx, text)
		failIf(t, !errors.Is(err, db.ErrCorrupt), "%s: %d, %v", text, n, err)
		n, err = c.DeleteWhere(ctx, text)
		failIf(t, !errors.Is(err, db.ErrCorrupt), "delete %s: %d, %v", text, n, err)
	}
	holds(t, c, 1, "label = 'b'")
	it, err := c.Get(ctx, "k")
	failIf(t, err != nil || it.Fields["s"] != "x", "%+v, %v", it, err)
}

var timesSchema = db.Schema{Bits: 8, Fields: []db.Field{{Name: "at", Type: db.Time, Indexed: true},
	{Name: "seen", Type: db.Time}}}

// Times and their texts come back in UTC and in whole microseconds, also after the database was closed.
func TestTimes(t *testing.T) {
	opts := &db.Options{FS: vfs.NewMem()}
	d, c := openNew(t, "db", opts, timesSchema)
	utc := func(year, month, day, hour, min, sec, micros int) time.Time {
		return time.Date(year, time.Month(month), day, hour, min, sec, micros*1000, time.UTC)
	}
	given := []struct {
		value any
		want  time.Time
	}{
		{time.Date(2024, 5, 1, 12, 30, 0, 123456789, time.FixedZone("", 7200)),
			utc(2024, 5, 1, 10, 30, 0, 123456)},
		{time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC), utc(1969, 12, 31, 23, 59, 59, 999_999)},
		{"2024-05-01T12:30:00.5+02:00", utc(2024, 5, 1, 10, 30, 0, 500_000)},
		{"2024-05-01", utc(2024, 5, 1, 0, 0, 0, 0)},
		{time.Time{}, utc(1, 1, 1, 0, 0, 0, 0)},
		{utc(0, 1, 1, 0, 0, 0, 0), utc(0, 1, 1, 0, 0, 0, 0)},
		{utc(9999, 12, 31, 23, 59, 59, 999_999), utc(9999, 12, 31, 23, 59, 59, 999_999)},
	}
	for i, g := range given {
		need(c.Put(ctx, &db.Item{Key: fmt.Sprint(i), Code: []byte{1},
			Fields: map[string]any{"at": g.value, "seen": g.value}}))(t)
	}
	d, _ = reopen(t, d, "db", opts)
	defer func() { dbkit.MustClose(t, d) }()
	c = dbkit.MustCollection(t, d, "main")
	for i, g := range given {
		it, err := c.Get(ctx, fmt.Sprint(i))
		if want := (map[string]any{"at": g.want, "seen": g.want}); err != nil ||
			!reflect.DeepEqual(it.Fields, want) {
			t.Errorf("%v is %v, %v", g.value, it, err)
			continue
		}
		b := need(json.Marshal(it))(t)
		var back db.Item
		must(t, json.Unmarshal(b, &back))
		back.CodeFrom = ""
		need(c.Put(ctx, &back))(t)
		if again, err := c.Get(ctx, it.Key); err != nil || !reflect.DeepEqual(again.Fields, it.Fields) {
			t.Errorf("%s became %v, %v", b, again, err)
		}
	}
	// A time finds the item that it was put with, though it has nanoseconds.
	for _, where := range []string{"at = ?", "seen = ?", "at IN (?)",
		"at >= ? AND at <= '2024-05-01T10:30:00.123456999Z'"} {
		holds(t, c, 1, where, given[0].value)
	}
	facets, err := c.Facets(ctx, db.FacetQuery{By: "at", Limit: 1, Where: "at > '2024'"})
	want := (db.FacetCount{Value: given[3].want, Items: 1})
	failIf(t, err != nil || facets.Distinct != 4 || facets.Counts[0] != want, "%+v, %v", facets, err)
	dbkit.CheckSound(t, d, "times")
}

// What is no time is refused with the name of the field, and nothing is stored.
func TestTimesRefused(t *testing.T) {
	d, c := openNew(t, "db", &db.Options{FS: vfs.NewMem()}, timesSchema)
	defer func() { dbkit.MustClose(t, d) }()
	for _, given := range []any{
		nil, 2024, 1.5, true, "", "soon", "01.05.2024", "2024-02-30", strings.Repeat("2024", 10_000),
		"10000-01-01",
		time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64, 0), codec.Time(1 << 62), &time.Time{},
		struct{}{},
	} {
		_, err := c.Put(ctx, &db.Item{Key: "k", Code: []byte{1}, Fields: map[string]any{"at": given}})
		failIf(t, !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), `field "at"`) ||
			len(err.Error()) > 300, "%.20v: %v", given, err)
	}
	holds(t, c, 0)
}

// A stored time that no field can have is damage, which reading and verifying find.
func TestTimesDamaged(t *testing.T) {
	opts := &db.Options{FS: vfs.NewMem()}
	d, c := openNew(t, "db", opts, timesSchema)
	defer func() { dbkit.MustClose(t, d) }()
	need(c.Put(ctx, &db.Item{Key: "k", Code: []byte{1}, Fields: map[string]any{"seen": "2024"}}))(t)
	failIf(t, codec.LeastTime != codec.Time(instant.Least) || codec.MostTime != codec.Time(instant.Most),
		"records and fields have different limits")
	b := need((&codec.ItemRecord{Fields: []codec.Field{{ID: 1, Value: codec.Time(math.MaxInt64)}}}).Append(
		nil))(t)
	keyValue{codec.NumberKey(codec.KindItem, 1, 0), b}.put(t, d)
	d, c = reopen(t, d, "db", opts)
	if it, err := c.Get(ctx, "k"); !errors.Is(err, db.ErrCorrupt) {
		t.Error(it, err)
	}
	found := 0
	_, err := d.Verify(ctx, db.VerifyOptions{}, func(f report.Finding) error {
		found++
		return nil
	})
	failIf(t, found == 0, "the damage is not found: %v", err)
}

// countedBy counts items one by one, as Facets defines it.
func countedBy(by string, items []*db.Item) db.Facets {
	out := db.Facets{By: by, Counts: []db.FacetCount{}, Items: len(items)}
	counts := map[any]int{}
	for _, it := range items {
		var values []any
		if by == "label" {
			for _, l := range it.Labels {
				values = append(values, l)
			}
		} else if v, has := it.Fields[strings.Trim(by, `"`)]; has {
			if x, is := v.(float64); is && x == 0 {
				v = 0.0 // -0 is the same
			}
			values = append(values, v)
		}
		if len(values) == 0 {
			out.Missing++
		}
		for _, v := range values {
			counts[v]++
		}
	}
	for v, n := range counts {
		out.Counts = append(out.Counts, db.FacetCount{Value: v, Items: n})
	}
	slices.SortFunc(out.Counts, func(a, b db.FacetCount) int {
		c := 0
		switch x := a.Value.(type) {
		case string:
			c = cmp.Compare(x, b.Value.(string))
		case int64:
			c = cmp.Compare(x, b.Value.(int64))
		case float64:
			c = cmp.Compare(x, b.Value.(float64))
		case time.Time:
			c = x.Compare(b.Value.(time.Time))
		case bool:
			if c = 1; !x {
				c = -1
			}
		}
		return cmp.Or(b.Items-a.Items, c)
	})
	out.Distinct = len(out.Counts)
	return out
}

// Counts by labels and by fields of all types, with and without an index, are those of the items
// that match, also after changes.
func TestFacets(t *testing.T) {
	r := seed.Rand(t, 1, 2)
	schema := db.Schema{Bits: 8}
	fields := []string{"label"}
	for _, indexed := range []bool{true, false} {
		for _, typ := range []db.FieldType{db.String, db.Int, db.Float, db.Bool, db.Time} {
			f := db.Field{Name: fmt.Sprint(typ, indexed), Type: typ, Indexed: indexed}
			schema.Fields, fields = append(schema.Fields, f), append(fields, f.Name)
		}
	}
	schema.Fields, fields = append(schema.Fields, db.Field{Name: "label", Type: db.Int}),
		append(fields, `"label"`)
	ints := []int64{0, 1, -1, math.MinInt64, math.MaxInt64, 2020, 2021}
	floats := []float64{0, math.Copysign(0, -1), 1.5, -1.5, math.MaxFloat64, -math.MaxFloat64,
		math.SmallestNonzeroFloat64}
	times := []time.Time{time.UnixMicro(0).UTC(), time.UnixMicro(-1).UTC(),
		time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)}
	change := func(it *db.Item) {
		it.Fields, it.Labels = map[string]any{}, nil
		for _, f := range schema.Fields {
			if r.IntN(5) == 0 {
				continue
			}
			it.Fields[f.Name] = map[db.FieldType]any{
				db.String: []string{"", "a", "b", "ab"}[r.IntN(4)], db.Int: ints[r.IntN(len(ints))],
				db.Float: floats[r.IntN(len(floats))], db.Bool: r.IntN(2) == 0,
				db.Time: times[r.IntN(len(times))],
			}[f.Type]
		}
		for l := range 4 {
			if r.IntN(4) == 0 {
				it.Labels = append(it.Labels, fmt.Sprint("l", l))
			}
		}
	}
	items := dbkit.CodeItems(300, 8, 1, func(i int) string { return fmt.Sprint("k", i) })
	for _, it := range items {
		change(it)
	}
	d, c := openWith(t, vfs.NewMem(), schema, items)
	for _, it := range items[:100] {
		change(it)
	}
	dbkit.PutAll(t, d, c, items[:100])
	need(c.Delete(ctx, "k299"))(t)
	for _, where := range []string{"", "inttrue >= 0", "label = 'l0' AND booltrue = true", "label = 'none'"} {
		var match []*db.Item
		for it := range every(t, c.Items(ctx, where)) {
			match = append(match, it)
		}
		for _, by := range fields {
			want := countedBy(by, match)
			got, err := c.Facets(ctx, db.FacetQuery{By: by, Where: where})
			failIf(t, err != nil || !reflect.DeepEqual(*got, want), "by %s where %s: %+v, want %+v, %v", by,
				where, got, want, err)
			if len(want.Counts) > 2 {
				want.Counts = want.Counts[:2]
			}
			got, err = c.Facets(ctx, db.FacetQuery{By: by, Where: where, Limit: 2})
			failIf(t, err != nil || !reflect.DeepEqual(*got, want), "2 by %s where %s: %+v, want %+v, %v", by,
				where, got, want, err)
		}
	}
	for _, wrong := range []db.FacetQuery{{}, {By: "labels"}, {By: `inttrue"`}, {By: `"inttrue`},
		{By: `"inttrue'`}, {By: `""inttrue""`}, {By: `"`}, {By: `""`}, {By: "nosuch"},
		{By: "label", Limit: -1}, {By: "label", Where: "nosuch = 1"}, {By: "label", Args: []any{1}}} {
		_, err := c.Facets(ctx, wrong)
		failIf(t, !errors.Is(err, db.ErrInvalid), "%+v: %v", wrong, err)
	}
	s, err := c.Facets(ctx, db.FacetQuery{By: "LABEL"})
	failIf(t, err != nil || s.Distinct != 4, "a keyword in upper case: %+v, %v", s, err)
}

// An answer counts its hits, or all within the radius, whatever the page.
func TestFacetsOfAnswers(t *testing.T) {
	_, c, items := labelWorld(t, vfs.NewMem(), 120)
	byKey := map[string]*db.Item{}
	for _, it := range items {
		byKey[it.Key] = it
	}
	of := func(hits []db.Hit) db.Facets {
		var found []*db.Item
		for _, h := range hits {
			found = append(found, byKey[h.Key])
		}
		return countedBy("label", found)
	}
	q := db.Query{From: "image", Vector: items[0].Vectors["image"], K: 10, Facets: []string{"label", "year"}}
	var after string
	for range 2 { // pages
		q.After = after
		res, err := c.Search(ctx, q)
		stopIf(t, err != nil || len(res.Facets) != 2 || !reflect.DeepEqual(res.Facets[0], of(res.Hits)),
			"%+v, %v, want %+v", res.Facets, err, of(res.Hits))
		year := res.Facets[1]
		failIf(t, year.By != "year" || year.Missing != 10 || year.Items != 10 || len(year.Counts) != 0, "%+v",
			year)
		after = res.Next
	}
	for _, q := range []db.Query{q, {Vector: q.Vector, From: "image", Facets: q.Facets,
		Where: "label != 'class1'"},
		{Vector: q.Vector, From: "image", Facets: q.Facets, Rerank: db.RerankProjection, MinSimilarity: .2},
		{Vector: q.Vector, From: "image", Facets: q.Facets, Rerank: db.RerankAsymmetric}} {
		const radius = 5
		all := need(dbkit.FirstWithin(c, db.Query{From: q.From, Vector: q.Vector, Where: q.Where,
			Rerank: q.Rerank, MinSimilarity: q.MinSimilarity, K: 1000}, radius))(t)
		q.K, q.After = 3, ""
		first := need(dbkit.FirstWithin(c, q, radius))(t)
		q.After = first.Next
		second, err := dbkit.FirstWithin(c, q, radius)
		want := of(all.Hits)
		if err != nil || len(all.Hits) < 6 || want.Items != first.Total ||
			!reflect.DeepEqual(first.Facets[0], want) || !reflect.DeepEqual(second.Facets[0], want) {
			t.Errorf("%+v and %+v, want %+v of %d, %v", first.Facets, second.Facets, want, first.Total, err)
		}
	}
	if _, res, err := dbkit.Explain(ctx, c, db.Query{Key: "k0", Facets: []string{"label"}}, -1); err != nil ||
		!reflect.DeepEqual(res.Facets[0], of(res.Hits)) {
		t.Errorf("explained: %+v, %v", res, err)
	}
	many, err := c.SearchAll(ctx, []db.Query{{Key: "k0", Facets: []string{"label"}}, {Key: "k1"}})
	failIf(t, err != nil || !reflect.DeepEqual(many[0].Facets[0], of(many[0].Hits)) || many[1].Facets != nil,
		"%+v, %v", many, err)
	errorIs(t, errOf(c.Search(ctx, db.Query{Key: "k0", Facets: []string{"nosuch"}})), db.ErrInvalid)
}

// unindexed has a field of each type, and no index.
var unindexed = []db.Field{{Name: "n", Type: db.Int}, {Name: "x", Type: db.Float},
	{Name: "s", Type: db.String},
	{Name: "b", Type: db.Bool}, {Name: "at", Type: db.Time}}

// openUnindexed makes a collection of n items that have fields without an index.
func openUnindexed(t testing.TB, opts *db.Options, n int) (*db.DB, *db.Collection) {
	t.Helper()
	d := dbkit.MustOpen(t, "db", opts)
	t.Cleanup(func() { _ = d.Close() })
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 8, Fields: unindexed}))(t)
	b := d.NewBatch()
	for i := range n {
		must(t, b.Put(c, unindexedItem(i, i)))
	}
	must(t, b.Commit(ctx))
	return d, c
}

// unindexedItem returns item i, in one of its versions.
func unindexedItem(i, version int) *db.Item {
	it := &db.Item{Key: fmt.Sprint("k", i), Code: []byte{byte(i)}, Fields: map[string]any{}}
	if version%7 > 0 {
		it.Fields["n"], it.Fields["s"] = filterInts[version%len(filterInts)],
			filterStrings[version%len(filterStrings)]
	}
	if version%5 > 0 {
		it.Fields["x"], it.Fields["b"] = filterFloats[version%len(filterFloats)], version%2 == 0
		it.Fields["at"] = filterTimes[version%len(filterTimes)]
	}
	return it
}

// indexedFilters ask for what the fields have.
var indexedFilters = []string{
	"n >= 0", "n = 9007199254740993", "x < .5", "x = 0", "s >= 'a'", "s LIKE 'z%'", "b = true",
	"NOT (n < 3 AND x > 1)", "has(n)", "s IS NULL OR b IS NULL",
	"at > '1970'", "at = '2024-04-30 22:00'", "has(at)",
}

// checkIndexed compares what filters find with the items, and tells whether fields are indexed.
func checkIndexed(t testing.TB, c *db.Collection, indexed ...string) {
	t.Helper()
	for _, f := range dbkit.MustSchema(t, c).Fields {
		failIf(t, f.Indexed != slices.Contains(indexed, f.Name), "%+v", f)
	}
	o := need(dbkit.NewOracle(ctx, c))(t)
	for i, where := range indexedFilters {
		if testing.Short() && i%3 > 0 { // the oracle takes long with the race detector, and runs alone
			continue
		}
		fine(t, o.CheckWhere(ctx, where))
		e, _, err := dbkit.Explain(ctx, c, db.Query{Code: []byte{1}, Where: where}, -1)
		if err != nil || slices.ContainsFunc(e.ScannedFields,
			func(name string) bool { return slices.Contains(indexed, name) }) {
			t.Errorf("%s: %v are scanned, %v", where, e.ScannedFields, err)
		}
	}
	dbkit.CheckSound(t, db.Of(c), fmt.Sprint(indexed))
}

// Fields are indexed, some and then all, and stay so; what is asked for twice is done once.
func TestAlterIndexesFields(t *testing.T) {
	t.Parallel()
	opts := &db.Options{FS: vfs.NewMem(), NoSync: true}
	d, c := openUnindexed(t, opts, 300)
	need(c.DeleteWhere(ctx, "n = 2"))(t)
	checkIndexed(t, c)
	must(t, c.Alter(ctx, db.Alteration{IndexFields: []string{"s", "x", "s"}}))
	checkIndexed(t, c, "s", "x")
	for i := range 50 {
		need(c.Put(ctx, unindexedItem(i*8, i+3)))(t)
	}
	must(t, c.Alter(ctx, db.Alteration{IndexFields: []string{"b", "s", "n", "at"},
		AddFields: []db.Field{{Name: "more", Type: db.Int, Indexed: true}}}))
	checkIndexed(t, c, "s", "x", "n", "b", "at", "more")
	must(t, c.Alter(ctx, db.Alteration{IndexFields: []string{"b"}}))
	d, _ = reopen(t, d, "db", opts)
	defer func() { dbkit.MustClose(t, d) }()
	c = dbkit.MustCollection(t, d, "main")
	checkIndexed(t, c, "s", "x", "n", "b", "at", "more")
	errorIs(t, errOf(c.Put(ctx, &db.Item{Key: "long", Code: []byte{1},
		Fields: map[string]any{"s": strings.Repeat("s", db.MaxIndexedBytes+1)}})), db.ErrInvalid)
}

// An index is made in blocks of rows, each a commit of its own, between which others write.
func TestIndexesAreMadeInBlocks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		items, payload int
		commits        uint64 // one that begins, and the blocks
	}{{10, 0, 2}, {20_000, 0, 4}, {12, 1 << 20, 5}} { // 8,192 rows are a block, or records of 4 MiB
		d, c := openUnindexed(t, &db.Options{FS: vfs.NewMem(), NoSync: true}, test.items)
		for i := range test.items {
			it := unindexedItem(i, i)
			if it.Payload = make([]byte, test.payload); test.payload > 0 {
				need(c.Put(ctx, it))(t)
			}
		}
		sequence := func() uint64 { return need(d.Stats())(t).Sequence }
		before := sequence()
		must(t, c.Alter(ctx, db.Alteration{IndexFields: []string{"n", "s"}}))
		n := sequence() - before
		failIf(t, n != test.commits, "%d items with payloads of %d bytes: %d commits, want %d", test.items,
			test.payload, n, test.commits)
		if test.items < 100 { // a scan of all items for each filter
			checkIndexed(t, c, "n", "s")
		}
		dbkit.MustClose(t, d)
	}
}

// Writers go on while fields are indexed, one by one and with many items at once, and the sets of rows
// are right at the end.
func TestFieldsAreIndexedBesideWrites(t *testing.T) {
	t.Parallel()
	n := effort.Of(40_000, 9_000) // five blocks, or two
	d, c := openUnindexed(t, &db.Options{FS: vfs.NewMem(), NoSync: true}, n)
	begun, done := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	write := func(change func(i int) error) {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				if err := change(i); err != nil {
					t.Error(err)
					return
				}
				if i == 3 {
					begun <- struct{}{}
				}
			}
		})
	}
	r := seed.Rand(t, 3, 1)
	write(func(i int) error { return errOf(c.Put(ctx, unindexedItem(r.IntN(n), i))) })
	write(func(i int) error { return errOf(c.Delete(ctx, fmt.Sprint("k", (i*7919)%n))) })
	write(func(i int) error {
		return errOf(c.Merge(ctx, &db.Item{Key: fmt.Sprint("k", (i*31)%n), Code: []byte{1},
			Fields: map[string]any{"n": i, "s": "merged"}}))
	})
	write(func(i int) error {
		if i > 3 {
			return errOf(c.Count(ctx, "n > 3"))
		}
		b := d.NewBatch()
		for j := range 2000 {
			if err := b.Put(c, unindexedItem(n+i*2000+j, j)); err != nil {
				return err
			}
		}
		return b.Commit(ctx)
	})
	for range 4 {
		<-begun
	}
	must(t, c.Alter(ctx, db.Alteration{IndexFields: []string{"n", "x", "s", "b"}}))
	close(done)
	wg.Wait()
	checkIndexed(t, c, "n", "x", "s", "b")
}

// What cannot be indexed is refused, and then the collection is as before.
func TestAlterRefusesIndexes(t *testing.T) {
	opts := &db.Options{FS: vfs.NewMem(), NoSync: true}
	d, c := openUnindexed(t, opts, 100)
	long := strings.Repeat("z", db.MaxIndexedBytes+1)
	for _, key := range []string{"k40", "k70"} {
		need(c.Merge(ctx, &db.Item{Key: key, Fields: map[string]any{"s": long}}))(t)
	}
	var at *db.ItemError
	err := c.Alter(ctx, db.Alteration{IndexFields: []string{"n", "s"}})
	if !errors.As(err, &at) || at.Key != "k40" || !errors.Is(err, db.ErrInvalid) ||
		!strings.Contains(err.Error(),
			`field "s" is indexed: a string in it has at most 1024 bytes, this one has 1025`) {
		t.Errorf("a long string: %v", err)
	}
	errorIs(t, c.Alter(ctx, db.Alteration{IndexFields: []string{"n", "z"}}), db.ErrInvalid,
		`unknown field "z"`)
	errorIs(t, c.Alter(ctx, db.Alteration{IndexFields: []string{"n"}, AddFields: unindexed[:1]}),
		db.ErrExists)
	errorIs(t, c.Alter(cancelled, db.Alteration{IndexFields: []string{"n"}}), context.Canceled)
	checkIndexed(t, c)
	prefix := codec.CollectionKey(codec.KindFieldRows, db.Inside(c).ID)
	fine(t, record.ForEach(db.State(d).Engine.DB, prefix,
		func(key, _ []byte) error { return fmt.Errorf("%x is left", key) }))
	must(t, c.Alter(ctx, db.Alteration{IndexFields: []string{"n"}}))
	checkIndexed(t, c, "n")
	fine(t, dbkit.MustCollection(t, indexOnlyOf(t, d, opts), "main").Alter(ctx,
		db.Alteration{IndexFields: []string{"x"}}))
}

// A string that an index does not take may come while the index is made: either it or the index is refused.
func TestLongStringsBesideAnIndex(t *testing.T) {
	effort.Slow(t)
	_, c := openUnindexed(t, &db.Options{FS: vfs.NewMem(), NoSync: true}, 10_000) // two blocks
	long := &db.Item{Key: "k5", Code: []byte{1},
		Fields: map[string]any{"s": strings.Repeat("z", db.MaxIndexedBytes+1)}}
	for round := range 4 {
		need(c.Put(ctx, unindexedItem(5, 5)))(t)
		var put error
		var wg sync.WaitGroup
		wg.Go(func() {
			for range round * 5 { // between blocks of rows
				fine(t, errOf(c.Put(ctx, unindexedItem(7, 7))))
			}
			_, put = c.Put(ctx, long)
		})
		err := c.Alter(ctx, db.Alteration{IndexFields: []string{"s"}})
		wg.Wait()
		var at *db.ItemError
		refused := err != nil
		if refused {
			put, err = err, put
		}
		stopIf(t, err != nil || !errors.Is(put, db.ErrInvalid) || !errors.As(put, &at) || at.Key != "k5",
			"index refused: %v; %v; the other: %v", refused, put, err)
		if !refused {
			checkIndexed(t, c, "s")
			return
		}
		checkIndexed(t, c)
	}
}

// A batch that was filled before its field was indexed is checked again.
func TestFullBatchMeetsAnIndex(t *testing.T) {
	for _, n := range []int{1, 3000} { // one by one, and as tables
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			d, c := openUnindexed(t, &db.Options{FS: vfs.NewMem(), NoSync: true}, 10)
			b := d.NewBatch()
			for i := range n {
				it := unindexedItem(100+i, i)
				if i == n/2 {
					it.Fields["s"] = strings.Repeat("z", db.MaxIndexedBytes+1)
				}
				must(t, b.Put(c, it))
			}
			must(t, c.Alter(ctx, db.Alteration{IndexFields: []string{"n", "s"}}))
			var at *db.ItemError
			err := b.Commit(ctx)
			failIf(t, !errors.Is(err, db.ErrInvalid) || !errors.As(err, &at) ||
				at.Key != fmt.Sprint("k", 100+n/2), "commit: %v", err)
			holds(t, c, 10)
			checkIndexed(t, c, "n", "s")
		})
	}
}
