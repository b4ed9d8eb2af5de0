package db_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/fit"
)

func TestSearchRefuses(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(40, synth.Config{})
	putAll(t, c, items)
	text := items[0].Vectors["text"]
	errorIs(t, errOf(c.SearchRadius(ctx, db.Query{From: "text", Vector: text}, 3)), db.ErrNoModel)
	errorIs(t, third(c.Encode(items[0])), db.ErrNoModel)
	errorIs(t, errOf(c.Evaluate(ctx, db.Evaluation{Queries: map[string][][]float32{"text": {text}},
		Labels: [][]string{{"a"}}})), db.ErrNoModel)
	dbkit.MustTrain(t, c, db.TrainOptions{})
	for name, tc := range map[string]struct {
		q    db.Query
		want error
		says string
	}{
		"nothing": {db.Query{}, db.ErrInvalid, "one of"},
		"both forms": {db.Query{From: "text", Vector: []float32{1}, Sparse: &db.Sparse{}}, db.ErrInvalid,
			"2 are given"},
		"two things":      {db.Query{Key: "k1", Code: make([]byte, 8)}, db.ErrInvalid, "2 are given"},
		"no from":         {db.Query{Vector: text}, db.ErrInvalid, "modality"},
		"unknown from":    {db.Query{From: "smell", Vector: text}, db.ErrInvalid, "image, text"},
		"unknown to":      {db.Query{From: "text", To: "smell", Vector: text}, db.ErrInvalid, "image, text"},
		"dimension":       {db.Query{From: "image", Vector: text}, db.ErrInvalid, "8 dimensions"},
		"unknown key":     {db.Query{Key: "nobody"}, db.ErrNotFound, "nobody"},
		"code length":     {db.Query{Code: make([]byte, 7)}, db.ErrInvalid, "56 bits"},
		"negative k":      {db.Query{Key: "k1", K: -1}, db.ErrInvalid, "k = -1"},
		"unknown rerank":  {db.Query{Key: "k1", Rerank: 9}, db.ErrInvalid, "rerank"},
		"negative rerank": {db.Query{Key: "k1", Rerank: -1}, db.ErrInvalid, "rerank"},
		"unknown from id": {db.Query{Key: "k1", From: "smell"}, db.ErrInvalid, "smell"},
	} {
		_, err := c.Search(ctx, tc.q)
		failIf(t, !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says), "%s: %v", name, err)
	}
	errorIs(t, errOf(c.SearchRadius(ctx, db.Query{Key: "k1"}, -1)), db.ErrInvalid)
	cctx, cancel := context.WithCancel(ctx)
	cancel()
	errorIs(t, errOf(c.Search(cctx, db.Query{Key: "k1"})), context.Canceled)
	empty := need(d.CreateCollection(ctx, "empty", db.Schema{Bits: 8}))(t)
	q := db.Query{Code: []byte{1}}
	errorsAre(t, context.Canceled, map[string]error{
		"search": errOf(empty.Search(cctx, q)), "radius": errOf(empty.SearchRadius(cctx, q, 1)),
		"all":     errOf(empty.SearchAll(cctx, []db.Query{q})),
		"explain": third(empty.Explain(cctx, q, -1)),
	})
	errorIs(t, errOf(c.Put(cctx, &db.Item{Key: "late"})), context.Canceled)
	for r := db.RerankProjection; r <= db.RerankAsymmetric; r++ {
		gives(t, r)(db.ParseRerank(strings.ToUpper(r.String())))
	}
	errorIs(t, errOf(db.ParseRerank("best")), db.ErrInvalid, "asymmetric")
	_ = d
}

func BenchmarkSearch(b *testing.B) {
	_, c := dbkit.OpenPairs(b)
	items := dbkit.Pairs(2000, synth.Config{Classes: 10})
	putAll(b, c, items)
	dbkit.MustTrain(b, c, db.TrainOptions{})
	for _, from := range []string{"image", "text"} {
		for _, order := range []db.Rerank{db.RerankProjection, db.RerankAsymmetric, db.RerankAuto} {
			name := "from=" + from
			if order != db.RerankProjection {
				name += "/" + order.String()
			}
			b.Run(name, func(b *testing.B) {
				q := db.Query{From: from, Vector: items[0].Vectors[from], Rerank: order}
				for b.Loop() {
					need(c.Search(ctx, q))(b)
				}
			})
		}
	}
}

// openMixed makes a learned collection of labelled and unlabelled items, some of
// which lack a modality: many codes, some of them shared.
func openMixed(t testing.TB, bits int) (c *db.Collection, items []*db.Item) {
	t.Helper()
	_, c, items = openMixedDB(t, bits)
	return c, items
}

// openMixedDB is openMixed with the database.
func openMixedDB(t testing.TB, bits int) (d *db.DB, c *db.Collection, items []*db.Item) {
	t.Helper()
	d, c = dbkit.OpenPairs(t)
	items = dbkit.Pairs(240, synth.Config{Classes: 5, Noise: 2})
	for i, it := range items {
		if i%2 == 1 {
			it.Labels = nil
		}
		if i%10 == 3 {
			delete(it.Vectors, "text")
		}
	}
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: bits}})
	return d, c, items
}

// Explain says what was read, and predicts what can be chosen.
func TestExplainAsymmetric(t *testing.T) {
	t.Parallel()
	c, items := openMixed(t, 16)
	q := db.Query{From: "text", Vector: items[0].Vectors["text"], Rerank: db.RerankAsymmetric,
		Plan: db.PlanDisk}
	e, _, err := c.Explain(ctx, q, -1)
	failIf(t, err != nil || e.Plan != "blockscan" || e.Scanned != e.Distinct || e.Codes == 0 ||
		e.Predicted["disk"] != 0, "%+v, %v", e, err)
	q.Plan = db.PlanAuto
	e, _, err = c.Explain(ctx, q, -1)
	failIf(t, err != nil || e.Plan != "scan" || e.Predicted["scan"] == 0, "%+v, %v", e, err)
}

// SearchAll gives each query the answer that Search gives it, whatever the others
// ask for, by lookups, by scans that they share and from the store.
func TestSearchAllIsSearchOfEach(t *testing.T) {
	t.Parallel()
	const q = 64
	n := 6000
	if testing.Short() {
		n = 1000 // in race builds pebble notes a stack for each table that is looked into
	}
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: q}))(t)
	b := d.NewBatch()
	codes := need(synth.Codes(synth.Clustered, q, n, 1))(t)
	for i := range n {
		it := &db.Item{Code: codes.At(i).AppendBytes(nil, q)}
		if i%3 == 0 {
			it.Labels = []string{"third"}
		}
		must(t, b.Put(c, it))
	}
	must(t, b.Commit(ctx))
	must(t, d.WaitForIndex(ctx))
	members, fresh := need2(synth.CodeQueries(synth.Clustered, q, n, 40, 1))(t)
	var queries []db.Query
	for i := range 40 {
		queries = append(queries, db.Query{Code: members.At(i).AppendBytes(nil, q), K: 1 + i*i%200,
			Plan: db.Plan(i % 6)}, db.Query{Code: fresh.At(i).AppendBytes(nil, q), Where: "label = 'third'",
			K: 5, Plan: db.Plan(i % 3)}, db.Query{Key: fmt.Sprint(i)})
	}
	sameAlone(t, c, queries)
	all, err := c.SearchAll(ctx, nil)
	failIf(t, len(all) != 0 || err != nil, "no queries: %v, %v", all, err)
	queries[17].Code, queries[17].Where, queries[17].Key = nil, "", "nobody"
	var bad *db.QueryError
	if _, err := c.SearchAll(ctx, queries); !errors.Is(err, db.ErrNotFound) || !errors.As(err, &bad) ||
		bad.Query != 17 {
		t.Errorf("a query by a key that is not there: %v", err)
	}
}

// The same where many queries meet in codes that thousands of items share, whose projections, or
// vectors, they are compared with together.
func TestSearchAllInLargeCodes(t *testing.T) {
	dbkit.LongTest(t)
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(9000, synth.Config{Classes: 3, Noise: 2})
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}, Rows: 300})
	for range 2 { // the second time with the vectors, which the first search asks for
		must(t, d.WaitForIndex(ctx))
		need(c.Search(ctx, db.Query{From: "text", Vector: items[0].Vectors["text"]}))(t)
	}
	var queries []db.Query
	for i := range 64 {
		q := db.Query{From: "text", Vector: items[i].Vectors["text"],
			Rerank: db.Rerank(i) % (db.RerankAsymmetric + 1), K: 1 + i*7}
		if i%9 == 0 {
			q.To = "image"
		}
		if i%11 == 0 {
			q.MinSimilarity = .3
			q.Rerank = db.RerankProjection
		}
		queries = append(queries, q)
	}
	sameAlone(t, c, queries)
}

// sameAlone compares the answers of SearchAll with that of Search to each query alone.
func sameAlone(t *testing.T, c *db.Collection, queries []db.Query) {
	t.Helper()
	all, err := c.SearchAll(ctx, queries)
	stopIf(t, err != nil || len(all) != len(queries), "%d answers, %v", len(all), err)
	for i := range queries {
		one, err := c.Search(ctx, queries[i])
		if diff := cmp.Diff(one, all[i], cmpopts.EquateNaNs()); err != nil || diff != "" {
			t.Errorf("query %d, order %v, plan %v: %v, %s", i, queries[i].Rerank, queries[i].Plan, err, diff)
		}
	}
}

// keysOf returns the keys of hits.
func keysOf(hits []db.Hit) []string {
	var keys []string
	for _, h := range hits {
		keys = append(keys, h.Key)
	}
	return keys
}

// The item that a query starts from is the first of those that share its code, however
// many these are, unless it is left out.
func TestQueryByKeyFindsItselfFirst(t *testing.T) {
	t.Parallel()
	_, c := dbkit.OpenCoded(t, 8)
	var items []*db.Item
	for i := range 300 {
		items = append(items, &db.Item{Key: fmt.Sprint("same", i), Code: []byte{5}},
			&db.Item{Key: fmt.Sprint("near", i), Code: []byte{4}})
	}
	putAll(t, c, items)
	for _, order := range []db.Rerank{db.RerankProjection, db.RerankNone, db.RerankAsymmetric} {
		for _, plan := range []db.Plan{db.PlanAuto, db.PlanScan, db.PlanDisk} {
			q := db.Query{Key: "same250", K: 10, Rerank: order, Plan: plan}
			res, err := c.Search(ctx, q)
			want := []string{"same250", "same0", "same1"}
			stopIf(t, err != nil || len(res.Hits) != 10 || !slices.Equal(keysOf(res.Hits)[:3], want),
				"%v, %v: %v, %v", order, plan, res, err)
			within, err := dbkit.FirstWithin(c, q, 0)
			failIf(t, err != nil || within.Total != 300 || !slices.Equal(keysOf(within.Hits),
				keysOf(res.Hits)), "%v, %v: within 0: %v, %v", order, plan, within, err)
			// Read on to the end, it comes once.
			for _, k := range []int{1, 7, 299, 300} {
				hits, err := pages(c, q, k, func() {})
				keys := keysOf(hits)
				if err != nil || len(hits) != 600 || keys[0] != "same250" ||
					len(slices.Compact(slices.Sorted(slices.Values(keys)))) != 600 {
					t.Errorf("%v, %v: by %d: %d hits, %v", order, plan, k, len(hits), err)
				}
			}

			q.ExcludeSelf = true
			res, err = c.Search(ctx, q)
			failIf(t, err != nil || len(res.Hits) != 10 || res.Hits[0].Key != "same0",
				"%v, %v: without itself: %v, %v", order, plan, res, err)
			within, err = dbkit.FirstWithin(c, q, 0)
			failIf(t, err != nil || within.Total != 299 || slices.Contains(keysOf(within.Hits), "same250"),
				"%v, %v: within 0 without itself: %v, %v", order, plan, within, err)
			gives(t, 599, order, plan)(dbkit.CountWithin(c, q, 8))
			hits, err := pages(c, q, 7, func() {})
			failIf(t, err != nil || len(hits) != 599 || slices.Contains(keysOf(hits), "same250"),
				"%v, %v: pages without itself: %d hits, %v", order, plan, len(hits), err)
			// A cursor is of the one or the other.
			other := q
			other.After, other.ExcludeSelf = res.Next, false
			if _, err := c.Search(ctx, other); !errors.Is(err, db.ErrInvalid) {
				t.Errorf("%v, %v: the cursor of another query: %v", order, plan, err)
			}
		}
	}
	errorIs(t, errOf(c.Search(ctx, db.Query{Code: []byte{5}, ExcludeSelf: true})), db.ErrInvalid,
		"starts from no item")

	// An item that comes anew behind a cursor is not shown twice.
	res, err := c.Search(ctx, db.Query{Key: "same250", K: 1})
	must(t, err)
	need(c.Delete(ctx, "same250"))(t)
	putAll(t, c, []*db.Item{{Key: "same250", Code: []byte{5}}})
	res, err = c.Search(ctx, db.Query{Key: "same250", K: 400, After: res.Next})
	failIf(t, err != nil || len(res.Hits) != 400 || slices.Contains(keysOf(res.Hits), "same250"),
		"behind itself: %v", err)
}

// A leaving context is cancelled after it has been asked so often.
type leaving struct {
	context.Context
	asked *int
}

func (c leaving) Err() error {
	if *c.asked--; *c.asked < 0 {
		return context.Canceled
	}
	return nil
}

// A search that is cancelled, whenever that is, ends with the error of its context, or has been
// answered before.
func TestSearchThatIsCancelled(t *testing.T) {
	items := dbkit.CodeItems(400, 8, 1, nil)
	_, c := openWith(t, vfs.NewMem(), db.Schema{Bits: 8}, items)
	q := db.Query{Code: items[0].Code, K: 390, Facets: []string{"label"}}
	want, err := c.Search(ctx, q)
	stopIf(t, err != nil || len(want.Hits) != q.K, "%v, %v", want, err)
	answered := false
	for n := 0; !answered; n++ {
		left := n
		r, err := c.Search(leaving{ctx, &left}, q)
		switch {
		case err == nil && len(r.Hits) == q.K:
			answered = true
		case !errors.Is(err, context.Canceled):
			t.Fatalf("cancelled when asked for the %dth time: %v, %v", n, r, err)
		}
		left = n
		runs, err := c.SearchRadius(leaving{ctx, &left}, q, 8)
		if errors.Is(err, context.Canceled) {
			continue
		}
		must(t, err)
		if r, err := runs.First(leaving{ctx, &left}, q.K); err != nil && !errors.Is(err, context.Canceled) ||
			err == nil && len(r.Hits) != q.K {
			t.Fatalf("within a radius, cancelled when asked for the %dth time: %v, %v", n, r, err)
		}
		must(t, runs.Close())
		stopIf(t, n > 10_000, "the search never ends")
	}
}
