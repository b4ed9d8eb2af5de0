package dbkit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/oracle"
)

// An Oracle knows all items of a collection, and finds items by looking at each of
// them. It belongs to the state of the collection and the code space at which it was
// made. Compare it only with the same state: if others write or train meanwhile, use a
// snapshot for both. It is safe for concurrent use.
type Oracle struct {
	c        *db.Collection
	schema   db.Schema
	space    db.Space
	revision uint32
	items    []*db.Item // in database order
	byKey    map[string]*db.Item
	rows     map[string]uint32 // rows of the items that have a code, by key
}

// NewOracle reads all items of a collection. The collection may be of a snapshot or of
// a space (db.Collection.InSpace). The Oracle takes the memory of the items, vectors
// included. NewOracle returns errors of reading, and an error if the codes that
// searches use are not those of the items.
func NewOracle(ctx context.Context, c *db.Collection) (*Oracle, error) {
	o := &Oracle{c: c, byKey: map[string]*db.Item{}, rows: map[string]uint32{}}
	var err error
	if o.schema, err = c.Schema(); err != nil {
		return nil, err
	}
	stats, err := c.Stats(ctx)
	if err != nil {
		return nil, err
	}
	o.space, o.revision = stats.Space, stats.Revision
	for it, err := range c.Items(ctx, "") {
		if err != nil {
			return nil, err
		}
		o.items = append(o.items, it)
		o.byKey[it.Key] = it
	}
	return o, o.readCodes(ctx)
}

// readCodes reads rows, and compares codes with those of the items.
func (o *Oracle) readCodes(ctx context.Context) error {
	coded := 0
	for _, it := range o.items {
		if it.Code != nil {
			coded++
		}
	}
	for c, err := range o.c.Codes(ctx, "") {
		if err != nil {
			return err
		}
		coded--
		o.rows[c.Key] = c.Row
		it := o.byKey[c.Key]
		if it == nil {
			return fmt.Errorf("dbkit: Codes has an item %q, and Items has none; if others write meanwhile, take a snapshot", c.Key)
		}
		if !bytes.Equal(it.Code, c.Code) {
			return fmt.Errorf("dbkit: the code of item %q is %x by Items, and %x by Codes; if others write meanwhile, take a snapshot", c.Key, it.Code, c.Code)
		}
	}
	if coded != 0 {
		return fmt.Errorf("dbkit: Items and Codes differ by %d items that have a code; if others write meanwhile, take a snapshot", coded)
	}
	return nil
}

// Items returns the items for which an expression is true, in database order; see
// db.Query.Where. args are the values of its placeholders. The items are shared: do not
// write to them.
func (o *Oracle) Items(where string, args ...any) ([]*db.Item, error) {
	match, err := oracle.Where(where, args, o.schema)
	if err != nil {
		return nil, fmt.Errorf("dbkit: %w", err)
	}
	var found []*db.Item
	for _, it := range o.items {
		if match(it) {
			found = append(found, it)
		}
	}
	return found, nil
}

// Hits returns all items that a query may find, ignoring its K and Rerank. They
// are sorted by (distance, -score), then by (code, row), with the item of q.Key before
// others of its code. Search sorts the items of one code by db.Query.Rerank. The
// database only encodes the query.
func (o *Oracle) Hits(ctx context.Context, q db.Query) ([]db.Hit, error) {
	a, err := o.answer(ctx, &q)
	if err != nil {
		return nil, describe(&q, err)
	}
	hits := make([]db.Hit, len(a.Candidates))
	for i, c := range a.Candidates {
		hits[i] = db.Hit{Key: c.Key, Row: c.Row, Distance: c.Distance, Score: c.Score}
	}
	return hits, nil
}

// answer returns the answer that a query must have.
func (o *Oracle) answer(ctx context.Context, q *db.Query) (*oracle.Answer, error) {
	if q.After != "" {
		return nil, errors.New("dbkit: an oracle answers queries from the start, not behind a cursor")
	}
	b, z, err := o.c.EncodeQuery(ctx, *q)
	if err != nil {
		return nil, err
	}
	code := string(b)
	if z != nil && (q.Key == "" || q.From != "") {
		if err := oracle.Signs(code, z); err != nil {
			return nil, fmt.Errorf("dbkit: %w", err)
		}
	} else if it := o.byKey[q.Key]; q.Key != "" && it != nil {
		if it.Code != nil && string(it.Code) != code {
			return nil, fmt.Errorf("dbkit: the item has the code %x, and as a query %x", it.Code, code)
		}
	}
	found, err := o.Items(q.Where, q.Args...)
	if err != nil {
		return nil, err
	}
	a := &oracle.Answer{Projection: z, Self: q.Key}
	for _, it := range found {
		own := string(it.Code)
		if own == "" || q.To != "" && !oracle.HasModality(it, q.To) || q.ExcludeSelf && it.Key == q.Key {
			continue
		}
		a.Candidates = append(a.Candidates, oracle.Candidate{
			Key: it.Key, Row: o.rows[it.Key], Code: own, Distance: oracle.Distance(own, code),
			Score: oracle.Score(z, own)})
	}
	a.Sort()
	return a, nil
}

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
	// the context of t has ended when cleanup begins
	o, err := NewOracle(context.WithoutCancel(t.Context()), c)
	if err != nil {
		t.Fatalf("dbkit: the collection cannot be read: %v", err)
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
		return fmt.Errorf("dbkit: SearchAll: %w", err)
	}
	for i, q := range queries {
		one, err := o.c.Search(ctx, q)
		if err == nil && !oracle.SameHits(all[i].Hits, one.Hits) {
			err = fmt.Errorf("dbkit: SearchAll finds %v, Search %v", all[i].Hits, one.Hits)
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
		return fmt.Errorf("dbkit: the answer is of space %d, revision %d, the oracle of %d, %d", res.Space,
			res.Revision, o.space, o.revision)
	}
	k := cmp.Or(q.K, 10)
	if (res.Next != "") != (k < len(a.Candidates)) {
		return fmt.Errorf("dbkit: of %d items, behind the first %d, the cursor is %q", len(a.Candidates), k,
			res.Next)
	}
	if err := a.Check(res.Hits, k, -1, q.Rerank); err != nil {
		return fmt.Errorf("dbkit: %w", err)
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
			return fmt.Errorf("dbkit: read page by page: %w", err)
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
		return fmt.Errorf("dbkit: SearchRadius finds %d items within %d bits, want %d", runs.Total(), radius,
			want)
	}
	var hits []db.Hit
	for h, err := range runs.Hits(ctx) {
		if err != nil {
			return err
		}
		hits = append(hits, h)
	}
	if err := a.Check(hits, want, radius, q.Rerank); err != nil {
		return fmt.Errorf("dbkit: within %d bits: %w", radius, err)
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
		return fmt.Errorf("dbkit: where %s: Count counts %d items, want %d", where, n, len(want))
	}
	at := 0
	for it, err := range o.c.Items(ctx, where, args...) {
		if err != nil {
			return err
		}
		if at == len(want) || it.Key != want[at].Key {
			return fmt.Errorf("dbkit: where %s: item %d of Items is %q, which is not the one that comes next", where, at, it.Key)
		}
		if !reflect.DeepEqual(it, want[at]) {
			return fmt.Errorf("dbkit: where %s: Items yields %+v, and without a filter %+v", where, it,
				want[at])
		}
		at++
	}
	if at != len(want) {
		return fmt.Errorf("dbkit: where %s: Items yields %d items, and not %q", where, at, want[at].Key)
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
