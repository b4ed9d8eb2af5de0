package db_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/seed"
)

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
	schema.Fields, fields = append(schema.Fields, db.Field{Name: "label", Type: db.Int}), append(fields, `"label"`)
	ints := []int64{0, 1, -1, math.MinInt64, math.MaxInt64, 2020, 2021}
	floats := []float64{0, math.Copysign(0, -1), 1.5, -1.5, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64}
	times := []time.Time{time.UnixMicro(0).UTC(), time.UnixMicro(-1).UTC(), time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)}
	change := func(it *db.Item) {
		it.Fields, it.Labels = map[string]any{}, nil
		for _, f := range schema.Fields {
			if r.IntN(5) == 0 {
				continue
			}
			it.Fields[f.Name] = map[db.FieldType]any{
				db.String: []string{"", "a", "b", "ab"}[r.IntN(4)], db.Int: ints[r.IntN(len(ints))],
				db.Float: floats[r.IntN(len(floats))], db.Bool: r.IntN(2) == 0, db.Time: times[r.IntN(len(times))],
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
		for it := range every(t, c.ItemsWhere(ctx, where)) {
			match = append(match, it)
		}
		for _, by := range fields {
			want := countedBy(by, match)
			got, err := c.Facets(ctx, db.FacetQuery{By: by, Where: where})
			if err != nil || !reflect.DeepEqual(*got, want) {
				t.Errorf("by %s where %s: %+v, want %+v, %v", by, where, got, want, err)
			}
			if len(want.Counts) > 2 {
				want.Counts = want.Counts[:2]
			}
			if got, err := c.Facets(ctx, db.FacetQuery{By: by, Where: where, Limit: 2}); err != nil || !reflect.DeepEqual(*got, want) {
				t.Errorf("2 by %s where %s: %+v, want %+v, %v", by, where, got, want, err)
			}
		}
	}
	for _, wrong := range []db.FacetQuery{{}, {By: "labels"}, {By: `inttrue"`}, {By: `"inttrue`}, {By: `"inttrue'`}, {By: `""inttrue""`}, {By: `"`}, {By: `""`}, {By: "nosuch"}, {By: "label", Limit: -1}, {By: "label", Where: "nosuch = 1"}, {By: "label", Args: []any{1}}} {
		if _, err := c.Facets(ctx, wrong); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	if s, err := c.Facets(ctx, db.FacetQuery{By: "LABEL"}); err != nil || s.Distinct != 4 {
		t.Errorf("a keyword in upper case: %+v, %v", s, err)
	}
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
		if err != nil || len(res.Facets) != 2 || !reflect.DeepEqual(res.Facets[0], of(res.Hits)) {
			t.Fatalf("%+v, %v, want %+v", res.Facets, err, of(res.Hits))
		}
		if year := res.Facets[1]; year.By != "year" || year.Missing != 10 || year.Items != 10 || len(year.Counts) != 0 {
			t.Errorf("%+v", year)
		}
		after = res.Next
	}
	for _, q := range []db.Query{q, {Vector: q.Vector, From: "image", Facets: q.Facets, Where: "label != 'class1'"},
		{Vector: q.Vector, From: "image", Facets: q.Facets, Rerank: db.RerankProjection, MinSimilarity: .2},
		{Vector: q.Vector, From: "image", Facets: q.Facets, Rerank: db.RerankAsymmetric, FacetLimit: 1}} {
		const radius = 5
		all := need(dbkit.FirstWithin(c, db.Query{From: q.From, Vector: q.Vector, Where: q.Where, Rerank: q.Rerank, MinSimilarity: q.MinSimilarity, K: 1000}, radius))(t)
		q.K, q.After = 3, ""
		first := need(dbkit.FirstWithin(c, q, radius))(t)
		q.After = first.Next
		second, err := dbkit.FirstWithin(c, q, radius)
		want := of(all.Hits)
		if q.FacetLimit > 0 {
			want.Counts = want.Counts[:q.FacetLimit]
		}
		if err != nil || len(all.Hits) < 6 || want.Items != first.Total || !reflect.DeepEqual(first.Facets[0], want) || !reflect.DeepEqual(second.Facets[0], want) {
			t.Errorf("%+v and %+v, want %+v of %d, %v", first.Facets, second.Facets, want, first.Total, err)
		}
	}
	if _, res, err := c.Explain(ctx, db.Query{Key: "k0", Facets: []string{"label"}}, -1); err != nil || !reflect.DeepEqual(res.Facets[0], of(res.Hits)) {
		t.Errorf("explained: %+v, %v", res, err)
	}
	many, err := c.SearchAll(ctx, []db.Query{{Key: "k0", Facets: []string{"label"}}, {Key: "k1"}})
	if err != nil || !reflect.DeepEqual(many[0].Facets[0], of(many[0].Hits)) || many[1].Facets != nil {
		t.Errorf("%+v, %v", many, err)
	}
	if _, err := c.Search(ctx, db.Query{Key: "k0", Facets: []string{"nosuch"}}); !errors.Is(err, db.ErrInvalid) {
		t.Error(err)
	}
}
