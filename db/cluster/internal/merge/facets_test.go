package merge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/merge"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

var facetNames = []string{"label", "LABEL", `"label"`, "year", "title", "price", "new", "at", `"at"`}

// Facets of shards are those of one database, for labels and fields of every type.
func TestFacetsAreThoseOfOne(t *testing.T) {
	dbkit.LongTest(t)
	for _, shards := range []int{1, 4, 9} {
		c := collections()[1].cut(t, 400, shards)
		for _, where := range []string{"", "year >= 2002", "label = 'class1'", "title = 'none has it'"} {
			for _, by := range facetNames {
				for _, limit := range []int{0, 1, 3} {
					want, err := c.one.Facets(ctx, db.FacetQuery{By: by, Where: where, Limit: limit})
					if err != nil {
						t.Fatal(err)
					}
					parts := []*db.Facets{nil}
					for _, s := range c.shards {
						p, err := s.Facets(ctx, db.FacetQuery{By: by, Where: where})
						if err != nil {
							t.Fatal(err)
						}
						parts = append(parts, p)
					}
					got, err := merge.Facets(parts, limit)
					if err != nil {
						t.Fatal(err)
					}
					if d := cmp.Diff(want, got); d != "" {
						t.Errorf("%d shards, by %s where %q, limit %d (-want +got):\n%s", shards, by, where,
							limit, d)
					}
				}
			}
		}
	}
}

// Facets of answers are of all items within a radius, and else of the hits of the page.
func TestFacetsOfAnswers(t *testing.T) {
	c := collections()[0].cut(t, 400, 4)
	x := pairs(1, 0, 77)[0].Vectors["image"]
	for _, radius := range []int{-1, 0, 6, 16} {
		// All of these have the same first hits: without a score no page ends in a tie of one database alone.
		q := db.Query{From: "image", Vector: x, K: 37, Facets: facetNames, Where: "year >= 2001"}
		want, err := first(c.one, q, radius)
		if err != nil {
			t.Fatal(err)
		}
		q.Include = db.IncludeLabels | db.IncludeFields
		w := merge.Want{K: q.K, Within: radius >= 0}
		got, at, err := c.page(t, q, radius, merge.Cursor{}, w)
		if err != nil {
			t.Fatal(err)
		}
		if radius < 0 && fmt.Sprint(keys(want.Hits)) != fmt.Sprint(keys(got.Hits)) {
			t.Fatal("the page ends in a tie: choose another query")
		}
		if d := cmp.Diff(want.Facets, got.Facets); d != "" {
			t.Errorf("within %d (-want +got):\n%s", radius, d)
		}
		for radius >= 0 && !at.Done() { // on each page, also when shards have ended
			if got, at, err = c.page(t, q, radius, at, w); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want.Facets, got.Facets); d != "" || got.Total != want.Total {
				t.Errorf("within %d, later (-want +got):\n%s", radius, d)
			}
		}
	}
}

func TestFacetsThatDoNotAddUp(t *testing.T) {
	count := func(value any) *db.Facets {
		return &db.Facets{By: "x", Counts: []db.FacetCount{{Value: value, Items: 2}}, Distinct: 1, Items: 2}
	}
	other := count("a")
	other.By = "y"
	cut := count("a")
	cut.Distinct = 2
	for what, parts := range map[string][]*db.Facets{
		`shard 2 has facets by "y", shard 1 by "x"`:                {nil, count("a"), other},
		`shard 0 has 1 counts of 2 values of "x"`:                  {cut},
		`shard 1: facets by "x": values of types string and int64`: {count("a"), count(int64(1))},
		`a value of type int, which no field has`:                  {count(1)},
	} {
		if _, err := merge.Facets(parts, 0); !refused(err) || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, not %s", err, what)
		}
	}
	if _, err := merge.Facets(nil, -1); !refused(err) {
		t.Error(err)
	}
	if got, err := merge.Facets([]*db.Facets{nil, nil}, 0); err != nil || got.Items != 0 ||
		len(got.Counts) != 0 {
		t.Error(got, err)
	}
	for _, hit := range []db.Hit{{Key: "a"},
		{Key: "a", Item: &db.Item{Key: "a", Fields: map[string]any{"x": 1}}}} {
		answer := &db.Result{Hits: []db.Hit{hit}, Facets: []db.Facets{{By: "x"}}}
		if _, _, err := merge.Page([]*db.Result{answer}, merge.Cursor{}, merge.Want{K: 1}); !refused(err) ||
			!strings.Contains(err.Error(), "facets by") {
			t.Error(err)
		}
	}
}

// Values that are equal are one, in whatever form they have travelled; parts stay as they are.
func TestFacetsOfEqualValues(t *testing.T) {
	at := time.Date(2020, 5, 1, 12, 0, 0, 1000, time.UTC)
	parts := []*db.Facets{
		{By: "at", Counts: []db.FacetCount{{Value: at, Items: 1}}, Distinct: 1, Items: 3, Missing: 2},
		{By: "at", Counts: []db.FacetCount{{Value: at.In(time.FixedZone("there", 3600)), Items: 4}},
			Distinct: 1, Items: 4},
	}
	got, err := merge.Facets(parts, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := &db.Facets{By: "at", Counts: []db.FacetCount{{Value: at, Items: 5}}, Distinct: 1, Items: 7,
		Missing: 2}
	if d := cmp.Diff(want, got); d != "" || parts[0].Counts[0].Items != 1 {
		t.Error(d)
	}
	zero := 0.0
	got, err = merge.Facets([]*db.Facets{
		{Counts: []db.FacetCount{{Value: -zero, Items: 1}}, Distinct: 1},
		{Counts: []db.FacetCount{{Value: 1 / -(1 / zero), Items: 1}, {Value: -3.5, Items: 2},
			{Value: 2.0, Items: 2}}, Distinct: 3},
	}, 0)
	if err != nil || fmt.Sprint(got.Counts) != "[{-3.5 2} {0 2} {2 2}]" {
		t.Error(got, err)
	}
	got, err = merge.Facets([]*db.Facets{
		{Counts: []db.FacetCount{{Value: true, Items: 1}}, Distinct: 1},
		{Counts: []db.FacetCount{{Value: false, Items: 1}}, Distinct: 1},
	}, 0)
	if err != nil || fmt.Sprint(got.Counts) != "[{false 1} {true 1}]" {
		t.Error(got, err)
	}
}
