package dbtest

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/oracle"
)

// CheckSearches compares answers of a collection with those of an Oracle. It fails the
// test for each difference, and says where it is. It compares, for each query, the
// answers of Search; of SearchRadius within the distance of the last of its K hits, and
// within one bit less; of Count and Items for its filter; and of SearchAll
// for all queries together. A query that returns an error fails, too.
//
// It reads all items once, and looks at all of them for each query. If others write or
// train meanwhile, c must come from a snapshot.
func CheckSearches(t testing.TB, c *db.Collection, queries ...db.Query) {
	t.Helper()
	o, err := NewOracle(context.WithoutCancel(t.Context()), c) // the context of t has ended when cleanup begins
	if err != nil {
		t.Fatalf("dbtest: the collection cannot be read: %v", err)
	}
	o.report(t, queries)
}

// report fails a test for every query whose answers differ.
func (o *Oracle) report(t testing.TB, queries []db.Query) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	sound := true
	for _, q := range queries {
		if err := o.check(ctx, q); err != nil {
			t.Error(err)
			sound = false
		}
	}
	if sound {
		if err := o.together(ctx, queries); err != nil {
			t.Error(err)
		}
	}
}

// check makes all comparisons of one query.
func (o *Oracle) check(ctx context.Context, q db.Query) error {
	if err := o.CheckSearch(ctx, q); err != nil {
		return err
	}
	hits, err := o.Hits(ctx, q)
	if err != nil {
		return err
	}
	radius := 0
	if n := min(len(hits), cmp.Or(q.K, 10)); n > 0 {
		radius = hits[n-1].Distance
	}
	err = o.CheckRadius(ctx, q, radius)
	if err == nil && radius > 0 {
		err = o.CheckRadius(ctx, q, radius-1)
	}
	if err == nil && q.Where != "" {
		err = o.CheckWhere(ctx, q.Where, q.Args...)
	}
	return err
}

// together compares the answers of SearchAll with those of Search.
func (o *Oracle) together(ctx context.Context, queries []db.Query) error {
	all, err := o.c.SearchAll(ctx, queries)
	if err != nil {
		return fmt.Errorf("dbtest: SearchAll: %w", err)
	}
	for i, q := range queries {
		one, err := o.c.Search(ctx, q)
		if err == nil && !oracle.SameHits(all[i].Hits, one.Hits) {
			err = fmt.Errorf("dbtest: SearchAll finds %v, Search %v", all[i].Hits, one.Hits)
		}
		if err != nil {
			return describe(&q, err)
		}
	}
	return nil
}

// CheckSearch compares the answer of Search, and the first three pages of it, with
// the nearest items: the same items and no others, with their distances
// and scores, in an order that db.Query.Rerank allows. The order is checked where
// stored data defines it: by distance, by score, and of RerankNone. Items that share a code
// may come in any order of similarities. The error says where they differ, or is one of the database.
func (o *Oracle) CheckSearch(ctx context.Context, q db.Query) error {
	return describe(&q, o.search(ctx, q))
}

func (o *Oracle) search(ctx context.Context, q db.Query) error {
	a, err := o.answer(ctx, &q)
	if err != nil {
		return err
	}
	res, err := o.c.Search(ctx, q)
	if err != nil {
		return err
	}
	if res.Space != o.space || res.Revision != o.revision {
		return fmt.Errorf("dbtest: the answer is of space %d, revision %d, the oracle of %d, %d", res.Space, res.Revision, o.space, o.revision)
	}
	k := cmp.Or(q.K, 10)
	if (res.Next != "") != (k < len(a.Candidates)) {
		return fmt.Errorf("dbtest: of %d items, behind the first %d, the cursor is %q", len(a.Candidates), k, res.Next)
	}
	if err := a.Check(res.Hits, k, -1, q.Rerank); err != nil {
		return fmt.Errorf("dbtest: %w", err)
	}
	pages := slices.Clone(res.Hits)
	for range 2 {
		if res.Next == "" {
			break
		}
		q.After = res.Next
		if res, err = o.c.Search(ctx, q); err != nil {
			return err
		}
		pages = append(pages, res.Hits...)
		if err := a.Check(pages, len(pages), -1, q.Rerank); err != nil {
			return fmt.Errorf("dbtest: read page by page: %w", err)
		}
	}
	return nil
}

// CheckRadius compares the answers of SearchRadius with the items within
// radius bits, as CheckSearch does.
func (o *Oracle) CheckRadius(ctx context.Context, q db.Query, radius int) error {
	return describe(&q, o.within(ctx, q, radius))
}

func (o *Oracle) within(ctx context.Context, q db.Query, radius int) error {
	a, err := o.answer(ctx, &q)
	if err != nil {
		return err
	}
	want := a.Within(radius)
	runs, err := o.c.SearchRadius(ctx, q, radius)
	if err != nil {
		return err
	}
	defer runs.Close()
	if runs.Total() != want {
		return fmt.Errorf("dbtest: SearchRadius finds %d items within %d bits, want %d", runs.Total(), radius, want)
	}
	var hits []db.Hit
	for h, err := range runs.Hits(ctx) {
		if err != nil {
			return err
		}
		hits = append(hits, h)
	}
	if err := a.Check(hits, want, radius, q.Rerank); err != nil {
		return fmt.Errorf("dbtest: within %d bits: %w", radius, err)
	}
	return nil
}

// CheckWhere compares the results of Count and Items with the items for which
// an expression is true. args are the values of its placeholders.
func (o *Oracle) CheckWhere(ctx context.Context, where string, args ...any) error {
	want, err := o.Items(where, args...)
	if err != nil {
		return err
	}
	n, err := o.c.Count(ctx, where, args...)
	if err != nil {
		return err
	}
	if n != len(want) {
		return fmt.Errorf("dbtest: where %s: Count counts %d items, want %d", where, n, len(want))
	}
	at := 0
	for it, err := range o.c.Items(ctx, where, args...) {
		if err != nil {
			return err
		}
		if at == len(want) || it.Key != want[at].Key {
			return fmt.Errorf("dbtest: where %s: item %d of Items is %q, which is not the one that comes next", where, at, it.Key)
		}
		if !reflect.DeepEqual(it, want[at]) {
			return fmt.Errorf("dbtest: where %s: Items yields %+v, and without a filter %+v", where, it, want[at])
		}
		at++
	}
	if at != len(want) {
		return fmt.Errorf("dbtest: where %s: Items yields %d items, and not %q", where, at, want[at].Key)
	}
	return nil
}

// describe adds the query to an error.
func describe(q *db.Query, err error) error {
	if err == nil {
		return nil
	}
	var b strings.Builder
	switch {
	case q.Key != "":
		fmt.Fprintf(&b, "query by key %.80q", q.Key)
	case q.Code != nil:
		fmt.Fprintf(&b, "query by code %x", q.Code)
	default:
		b.WriteString("query by vector")
	}
	if q.From != "" {
		fmt.Fprintf(&b, " from %q", q.From)
	}
	if q.To != "" {
		fmt.Fprintf(&b, " to %q", q.To)
	}
	if q.Where != "" {
		fmt.Fprintf(&b, " where %.200s", q.Where)
	}
	if len(q.Args) > 0 {
		fmt.Fprintf(&b, " with %.200s", fmt.Sprint(q.Args...))
	}
	fmt.Fprintf(&b, ", k = %d, order %v, plan %v", cmp.Or(q.K, 10), q.Rerank, q.Plan)
	return fmt.Errorf("%w (%s)", err, &b)
}
