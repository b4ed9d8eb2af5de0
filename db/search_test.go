package db_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

func TestSearchRefuses(t *testing.T) {
	_, c, items := openPairs(t, -1, 40, synth.Config{})
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
		"unknown rerank":  {db.Query{Key: "k1", Rerank: 9}, db.ErrInvalid, "asymmetric"},
		"unknown plan":    {db.Query{Key: "k1", Plan: 77}, db.ErrInvalid, "blockscan"},
		"negative rerank": {db.Query{Key: "k1", Rerank: -1}, db.ErrInvalid, "rerank"},
		"unknown from id": {db.Query{Key: "k1", From: "smell"}, db.ErrInvalid, "smell"},
	} {
		_, err := c.Search(ctx, tc.q)
		failIf(t, !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says), "%s: %v", name, err)
	}
	errorIs(t, errOf(c.SearchRadius(ctx, db.Query{Key: "k1"}, -1)), db.ErrInvalid)
	for r := db.RerankProjection; r <= db.RerankAsymmetric; r++ {
		gives(t, r)(db.ParseRerank(strings.ToUpper(r.String())))
	}
	errorIs(t, errOf(db.ParseRerank("best")), db.ErrInvalid, "asymmetric")
	errorIs(t, errOf(db.Open("", nil)), db.ErrInvalid, "is empty")
}

// openMixed makes a learned collection of labelled and unlabelled items, some of which lack a modality: many
// codes, some of them shared.
func openMixed(t testing.TB, bits int) (c *db.Collection, items []*db.Item) {
	t.Helper()
	_, c = dbkit.OpenPairs(t)
	items = dbkit.Pairs(240, synth.Config{Classes: 5, Noise: 2})
	for i, it := range items {
		if i%2 == 1 {
			it.Labels = nil
		}
		if i%10 == 3 {
			delete(it.Vectors, "text")
		}
	}
	train(t, c, items, db.TrainOptions{Options: fit.Options{Bits: bits}})
	return c, items
}

// Explain says what was read, and predicts what can be chosen.
func TestExplainAsymmetric(t *testing.T) {
	t.Parallel()
	c, items := openMixed(t, 16)
	q := db.Query{From: "text", Vector: items[0].Vectors["text"], Rerank: db.RerankAsymmetric,
		Plan: db.PlanDisk}
	e, _, err := dbkit.Explain(ctx, c, q, -1)
	failIf(t, err != nil || e.Plan != "blockscan" || e.Scanned != e.Distinct || e.Codes == 0 ||
		e.Predicted["disk"] != 0, "%+v, %v", e, err)
	q.Plan = db.PlanAuto
	e, _, err = dbkit.Explain(ctx, c, q, -1)
	failIf(t, err != nil || e.Plan != "scan" || e.Predicted["scan"] == 0, "%+v, %v", e, err)
}

// Runs explain their own search, whatever is searched for between it and their reading, and by several
// goroutines at a time.
func TestExplainRuns(t *testing.T) {
	t.Parallel()
	c, items := openMixed(t, 16)
	q := db.Query{From: "text", Vector: items[0].Vectors["text"], Include: db.IncludeExplain}
	runs := need(c.SearchRadius(ctx, q, 2))(t)
	defer runs.Close()
	want := need(runs.First(ctx, 5))(t).Explain
	failIf(t, want.Plan == "auto" || want.Codes == 0 || want.Compared+want.Scanned == 0, "%+v", want)
	times := cmpopts.IgnoreFields(report.Explain{}, "EncodeUS", "SearchUS", "ResolveUS", "KeysUS",
		"Predicted")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 50 {
				other := db.Query{From: "text", Vector: items[i].Vectors["text"], K: 3}
				if _, err := c.Search(ctx, other); other.Vector != nil && err != nil {
					t.Error(err)
				}
				r, err := runs.First(ctx, 5)
				if err != nil {
					t.Error(err)
					return
				}
				if diff := cmp.Diff(want, r.Explain, times); diff != "" {
					t.Errorf("-want +got: %s", diff)
				}
			}
		})
	}
	all.Wait()
	_, err := c.SearchAll(ctx, []db.Query{{Key: "k0"}, q})
	errorIs(t, err, db.ErrInvalid, "query 1", "IncludeExplain")
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
	d, c := openNew(t, t.TempDir(), nil, db.Schema{Bits: q})
	defer dbkit.MustClose(t, d)
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
	_, err = c.SearchAll(ctx, queries)
	failIf(t, !errors.Is(err, db.ErrNotFound) || !errors.As(err, &bad) || bad.Query != 17,
		"a query by a key that is not there: %v", err)
}

// The same where many queries meet in codes that thousands of items share, whose projections, or
// vectors, they are compared with together.
func TestSearchAllInLargeCodes(t *testing.T) {
	dbkit.LongTest(t)
	d, c, items := openPairs(t, -1, 9000, synth.Config{Classes: 3, Noise: 2})
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
		r, err = runs.First(leaving{ctx, &left}, q.K)
		stopIf(t, err != nil && !errors.Is(err, context.Canceled) || err == nil && len(r.Hits) != q.K,
			"within a radius, cancelled when asked for the %dth time: %v, %v", n, r, err)
		must(t, runs.Close())
		stopIf(t, n > 10_000, "the search never ends")
	}
}

// pages reads an answer to its end, k hits at a time, and calls between after each page.
func pages(c *db.Collection, q db.Query, k int, between func()) ([]db.Hit, error) {
	var hits []db.Hit
	q.K = k
	for {
		res, err := c.Search(ctx, q)
		if err != nil {
			return hits, err
		}
		if hits = append(hits, res.Hits...); res.Next == "" {
			return hits, nil
		}
		if len(hits) > 1<<20 {
			return hits, errors.New("the pages do not end")
		}
		q.After = res.Next
		between()
	}
}

// An item that is alone with its code comes once, though its projection points away from the query.
func TestPagesOfLearnedCodesAreTheWholeAnswer(t *testing.T) {
	t.Parallel()
	for _, labelled := range []int{3, 60} {
		_, c := dbkit.OpenPairs(t)
		items := dbkit.Pairs(60, synth.Config{Classes: 4, Noise: 3})
		unlabel(items[labelled:])
		train(t, c, dbkit.Pairs(60, synth.Config{Classes: 4, Noise: 3}),
			db.TrainOptions{Options: fit.Options{Bits: 24}})
		putAll(t, c, items) // most have a code of their own now
		q := db.Query{From: "image", Vector: items[7].Vectors["image"], K: 100}
		want, err := c.Search(ctx, q)
		stopIf(t, err != nil || len(want.Hits) != 60, "%d hits, %v", len(want.Hits), err)
		for _, k := range []int{1, 2, 7, 59, 60} {
			if got, err := pages(c, q, k, func() {}); err != nil || !oracle.SameHits(got, want.Hits) {
				t.Errorf("pages of %d: %v, %v\nwant %v", k, got, err, want.Hits)
			}
		}
	}
}

// What comes and goes between the pages does not make the rest come twice, or not at all.
func TestPagesWhileTheCollectionChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := need(db.Open("db", &db.Options{FS: vfs.NewMem()}))(t)
		defer d.Close()
		c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 8}))(t)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		code := func() []byte { x := rng.Uint32(); return []byte{byte(x & (x >> 8))} }
		stay := map[string][]byte{}
		b := d.NewBatch()
		n := rapid.IntRange(1, 60).Draw(t, "items")
		for i := range n {
			it := &db.Item{Key: fmt.Sprint(i), Code: code()}
			if i%2 == 0 {
				stay[it.Key] = it.Code
			}
			b.Put(c, it)
		}
		must(t, b.Commit(ctx))
		q := db.Query{Code: code()}
		added := n
		got := need(pages(c, q, rapid.IntRange(1, 9).Draw(t, "k"), func() {
			b := d.NewBatch()
			for range rng.IntN(6) {
				switch i := 2*rng.IntN(n/2+1) + 1; rng.IntN(3) {
				case 0:
					b.Delete(c, fmt.Sprint(i))
				case 1:
					b.Put(c, &db.Item{Key: fmt.Sprint(i), Code: code()})
				default:
					if added < n+40 { // so that there is an end
						b.Put(c, &db.Item{Key: fmt.Sprint("new", added), Code: code()})
						added++
					}
				}
			}
			must(t, b.Commit(ctx))
		}))(t)
		seen := map[string]int{}
		last := 0
		for _, h := range got {
			seen[h.Key]++
			stopIf(t, h.Distance < last, "the distance falls from %d to %d", last, h.Distance)
			last = h.Distance
			if code, ok := stay[h.Key]; ok && h.Distance != bits.OnesCount8(code[0]^q.Code[0]) {
				t.Fatalf("item %s at %d", h.Key, h.Distance)
			}
		}
		for key := range stay {
			stopIf(t, seen[key] != 1, "item %s comes %d times in %d hits", key, seen[key], len(got))
		}
	})
}

// A page is not the last because what was before it is gone.
func TestPagesAfterThoseBeforeWereDeleted(t *testing.T) {
	_, c := dbkit.OpenCoded(t, 8)
	var items []*db.Item
	for i := range 12 {
		items = append(items, &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(1<<(i/2) - 1)}})
	}
	putAll(t, c, items)
	q := db.Query{Code: []byte{0}, K: 5}
	res, err := c.Search(ctx, q)
	stopIf(t, err != nil || len(res.Hits) != 5, "%v, %v", res, err)
	need(c.Delete(ctx, "0", "1", "2", "3", "4"))(t)
	q.After = res.Next
	res, err = c.Search(ctx, q)
	stopIf(t, err != nil || len(res.Hits) != 5 || res.Next == "", "%d hits, next %q, %v", len(res.Hits),
		res.Next, err)
	q.After = res.Next
	res, err = c.Search(ctx, q)
	stopIf(t, err != nil || len(res.Hits) != 2 || res.Next != "", "%d hits, next %q, %v", len(res.Hits),
		res.Next, err)
	// Within a radius, likewise; and an answer that has lost what followed ends.
	q.After, q.K = "", 3
	res, err = dbkit.FirstWithin(c, q, 4)
	stopIf(t, err != nil || len(res.Hits) != 3 || res.Total != 5, "%v, %v", res, err)
	q.After = res.Next
	need(c.Delete(ctx, "8", "9", "10", "11"))(t)
	res, err = dbkit.FirstWithin(c, q, 4)
	stopIf(t, err != nil || len(res.Hits) != 0 || res.Next != "", "%v, %v", res, err)
}

// The last page has no cursor, also where some items of the target have no code.
func TestLastPageHasNoCursor(t *testing.T) {
	t.Parallel()
	_, c, items := openPairs(t, -1, 40, synth.Config{})
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16}})
	far := make([]float32, 8)
	far[0] = 1e6
	for i := range 10 { // so far from everything that nothing can be said of them
		need(c.Put(ctx, &db.Item{Key: fmt.Sprint("far", i), Vectors: map[string][]float32{"image": far}}))(t)
	}
	need(c.Put(ctx, &db.Item{Key: "text", Vectors: map[string][]float32{"text": items[0].Vectors["text"]}}))(
		t)
	s, err := c.Stats(ctx)
	stopIf(t, err != nil || s.CodedItems == s.Items, "%v, %v", s, err)
	for _, plan := range dbkit.AllPlans {
		res, err := c.Search(ctx, db.Query{Code: []byte{1, 2}, To: "image", K: 40, Plan: plan})
		failIf(t, err != nil || len(res.Hits) != 40 || res.Next != "", "plan %v: %d hits, next %q, %v", plan,
			len(res.Hits), res.Next, err)
	}
}

// A cursor is good for the query that it is from, and for nothing else.
func TestCursorOfSomethingElse(t *testing.T) {
	t.Parallel()
	d, c := dbkit.OpenCoded(t, 16)
	other := need(d.CreateCollection(ctx, "other", db.Schema{Bits: 16}))(t)
	for _, c := range []*db.Collection{c, other} {
		putAll(t, c, []*db.Item{{Key: "a", Code: []byte{1, 2}}, {Key: "b", Code: []byte{1, 3}},
			{Key: "c", Code: []byte{7, 2}}})
	}
	res, err := c.Search(ctx, db.Query{Code: []byte{1, 2}, K: 1})
	stopIf(t, err != nil || res.Next == "", "%v, %v", res, err)
	raw := need(base64.RawURLEncoding.DecodeString(res.Next))(t)
	flipped := slices.Clone(raw)
	flipped[22] ^= 1 // of the distance: nothing but the checksum tells
	later := slices.Clone(raw)
	binary.LittleEndian.PutUint32(later[17:], 9) // another revision
	binary.LittleEndian.PutUint32(later[len(later)-4:], crc32.Checksum(later[:len(later)-4], crc32c))
	for name, tc := range map[string]struct {
		c     *db.Collection
		q     db.Query
		after string
	}{
		"another code":       {c, db.Query{Code: []byte{1, 3}}, res.Next},
		"a key":              {c, db.Query{Key: "a"}, res.Next},
		"another order":      {c, db.Query{Code: []byte{1, 2}, Rerank: db.RerankNone}, res.Next},
		"another collection": {other, db.Query{Code: []byte{1, 2}}, res.Next},
		"another revision":   {c, db.Query{Code: []byte{1, 2}}, base64.RawURLEncoding.EncodeToString(later)},
		"cut":                {c, db.Query{Code: []byte{1, 2}}, res.Next[:len(res.Next)-4]},
		"longer":             {c, db.Query{Code: []byte{1, 2}}, res.Next + "AAAA"},
		"flipped": {c, db.Query{Code: []byte{1, 2}},
			base64.RawURLEncoding.EncodeToString(flipped)},
		"words": {c, db.Query{Code: []byte{1, 2}}, "the next page, please"},
		"long":  {c, db.Query{Code: []byte{1, 2}}, strings.Repeat("A", 1<<16)},
	} {
		tc.q.After = tc.after
		_, serr := tc.c.Search(ctx, tc.q)
		_, rerr := tc.c.SearchRadius(ctx, tc.q, 3)
		_, _, eerr := dbkit.Explain(ctx, tc.c, tc.q, 3)
		for _, err := range []error{serr, rerr, eerr} {
			failIf(t, !errors.Is(err, db.ErrInvalid) || len(err.Error()) > 400, "%s: %v", name, err)
		}
	}
	// A total is of all items, also of those before the cursor.
	for _, plan := range dbkit.AllPlans {
		q := db.Query{Code: []byte{1, 2}, Plan: plan}
		all := need(dbkit.CountWithin(c, q, 16))(t)
		q.After = res.Next
		gives(t, all, plan)(dbkit.CountWithin(c, q, 16))
	}
	// The number of hits and the plan do not matter.
	res, err = c.Search(ctx, db.Query{Code: []byte{1, 2}, K: 7, Plan: db.PlanBlockScan, After: res.Next})
	failIf(t, err != nil || len(res.Hits) != 2 || res.Hits[0].Key != "b", "%v, %v", res, err)
}

// Whatever stands in a cursor, with or without a good checksum: no panic, and never an item twice.
func FuzzCursor(f *testing.F) {
	_, c := dbkit.OpenCoded(f, 8)
	var items []*db.Item
	for i := range 40 {
		items = append(items, &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i % 16)}})
	}
	putAll(f, c, items)
	res := need(c.Search(ctx, db.Query{Code: []byte{3}}))(f)
	good := need(base64.RawURLEncoding.DecodeString(res.Next))(f)
	f.Add(res.Next, []byte(nil))
	f.Add("", good[21:len(good)-4])
	f.Add("", []byte{255, 255, 0, 0, 0, 0, 0, 0, 248, 127, 255, 255, 255, 255, 0, 0, 192, 127, 255, 255, 255,
		255})
	f.Fuzz(func(t *testing.T, cursor string, place []byte) {
		if cursor == "" { // a place that nobody was at
			b := slices.Clone(good)
			copy(b[21:len(b)-4], place)
			binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], crc32c))
			cursor = base64.RawURLEncoding.EncodeToString(b)
		}
		for _, plan := range []db.Plan{db.PlanMemory, db.PlanScan, db.PlanBlockScan} {
			seen := map[string]bool{}
			q := db.Query{Code: []byte{3}, After: cursor, Plan: plan, K: 7}
			for q.After != "" {
				res, err := c.Search(ctx, q)
				if errors.Is(err, db.ErrInvalid) && q.After == cursor {
					break
				}
				must(t, err)
				for _, h := range res.Hits {
					stopIf(t, seen[h.Key], "%s comes twice", h.Key)
					seen[h.Key] = true
				}
				q.After = res.Next
			}
		}
	})
}

// Behind the cursor of any hit follow the hits that followed it, in every order that has cursors, and
// in answers by vectors; and an answer says what order it has.
func TestCursorOfEachHit(t *testing.T) {
	t.Parallel()
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(120, synth.Config{Seed: 4, Missing: .2})
	dbkit.PutAll(t, d, c, items)
	check := func(what string, q db.Query, want db.Rerank) {
		t.Helper()
		q.K, q.Include = 40, db.IncludeCursor
		for _, radius := range []int{-1, 9} {
			search := func(q db.Query) (*db.Result, error) {
				if radius >= 0 {
					return dbkit.FirstWithin(c, q, radius)
				}
				return c.Search(ctx, q)
			}
			whole, err := search(q)
			if errors.Is(err, db.ErrNoModel) && radius >= 0 {
				continue
			}
			stopIf(t, err != nil || whole.Rerank != want && radius < 0, "%s: order %v, want %v, %v", what,
				whole.Rerank, want, err)
			for i, h := range whole.Hits {
				rest := q
				rest.K, rest.Include, rest.After = 5, 0, h.Cursor
				got, err := search(rest)
				must(t, err, what, "behind hit", i)
				for j, g := range got.Hits {
					if i+1+j < len(whole.Hits) && g.Key != whole.Hits[i+1+j].Key || g.Cursor != "" {
						t.Fatalf("%s, behind hit %d: hit %d is %q, want %q", what, i, j, g.Key,
							whole.Hits[i+1+j].Key)
					}
				}
				if want := min(5, len(whole.Hits)-i-1); len(got.Hits) < want {
					t.Fatalf("%s, behind hit %d: %d hits, want %d", what, i, len(got.Hits), want)
				}
			}
		}
	}
	vector := items[7].Vectors["image"]
	check("by vectors", db.Query{From: "image", Vector: vector}, db.RerankAuto)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 12, Seed: 1}})
	for _, r := range []db.Rerank{db.RerankProjection, db.RerankNone, db.RerankAsymmetric} {
		check(r.String(), db.Query{From: "image", Vector: vector, Rerank: r}, r)
	}
	check("auto", db.Query{From: "text", Vector: items[1].Vectors["text"], To: "image"}, db.RerankProjection)
	check("by code", db.Query{Code: []byte{1, 7}}, db.RerankProjection)
}

// A cursor goes on in the answer that it comes from alone: whatever a query asks for otherwise, that decides
// which items are in the answer or in which order, refuses it. What decides neither may be another on each
// page.
func TestCursorOfAnotherQuery(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	items := dbkit.ViewItems(120, 3)
	putAll(t, c, items)
	x, y := items[0].Vectors, items[1].Vectors
	may := map[string]func(q *db.Query){
		"K":       func(q *db.Query) { q.K = 7 },
		"Plan":    func(q *db.Query) { q.Plan = db.PlanScan },
		"Include": func(q *db.Query) { q.Include = db.IncludeLabels | db.IncludeCursor },
		"Facets":  func(q *db.Query) { q.Facets = []string{"label"} },
	}
	mayNot := map[string]func(q *db.Query){
		"From":          func(q *db.Query) { q.From, q.Vector = "text", x["text"] },
		"To":            func(q *db.Query) { q.To = "text" },
		"Vector":        func(q *db.Query) { q.Vector = y["image"] },
		"Key":           func(q *db.Query) { q.Vector, q.Key = nil, items[0].Key },
		"Where":         func(q *db.Query) { q.Where = "label != ?" },
		"Args":          func(q *db.Query) { q.Args = []any{"class2"} },
		"MinSimilarity": func(q *db.Query) { q.MinSimilarity = .11 },
	}
	learned := map[string]func(q *db.Query){
		"Rerank": func(q *db.Query) { q.Rerank = db.RerankAsymmetric },
		"Code": func(q *db.Query) {
			q.From, q.Vector, q.Code, q.MinSimilarity, q.Rerank = "", nil, make([]byte, 2), 0, 0
		},
	}
	// here below, and in tests of their own
	elsewhere := []string{"ExcludeSelf", "Words", "Space", "Revision", "Sparse", "Recall", "After"}
	for i := range reflect.TypeFor[db.Query]().NumField() {
		name := reflect.TypeFor[db.Query]().Field(i).Name
		failIf(t, may[name] == nil && mayNot[name] == nil && learned[name] == nil &&
			!slices.Contains(elsewhere, name), "may a cursor go on where %s is another?", name)
	}
	check := func(what string, q db.Query) {
		t.Helper()
		q.Where, q.Args, q.K = "label = ? OR NOT has(label)", []any{"class1"}, 2
		all := q
		all.K = 1000
		whole, err := c.Search(ctx, all)
		must(t, err, what)
		page, err := c.Search(ctx, q)
		stopIf(t, err != nil || page.Next == "" || len(whole.Hits) < 10, "%s: %d hits in all, %+v, %v", what,
			len(whole.Hits), page, err)
		for name, change := range may {
			next := q
			next.After = page.Next
			change(&next)
			next.After = page.Next
			r, err := c.Search(ctx, next)
			failIf(t, err != nil || len(r.Hits) != min(next.K, len(whole.Hits)-2) ||
				r.Hits[0].Key != whole.Hits[2].Key, "%s, another %s: %+v, %v", what, name, r, err)
		}
		changes := maps.Clone(mayNot)
		if what != "untrained" {
			maps.Copy(changes, learned)
		}
		for name, change := range changes {
			next := q
			change(&next)
			if _, err := c.Search(ctx, next); err != nil { // without a cursor it has an answer
				t.Fatalf("%s, another %s: %v", what, name, err)
			}
			next.After = page.Next
			if r, err := c.Search(ctx, next); !errors.Is(err, db.ErrInvalid) {
				t.Errorf("%s: a cursor goes on where %s is another: %+v, %v", what, name, r, err)
			}
		}
	}
	check("untrained", db.Query{From: "image", To: "image", Vector: x["image"], MinSimilarity: .1})
	early := db.Query{From: "text", Vector: x["text"], K: 2}
	early.After = need(c.Search(ctx, early))(t).Next
	dbkit.MustTrain(t, c, dbkit.TinyTraining(1))
	errorIs(t, errOf(c.Search(ctx, early)), db.ErrInvalid, "before the training")
	check("learned", db.Query{From: "image", To: "image", Vector: x["image"], MinSimilarity: .1,
		Rerank: db.RerankProjection})

	own := db.Query{Key: items[0].Key, K: 2}
	page, err := c.Search(ctx, own)
	stopIf(t, err != nil || page.Next == "", "%v, %v", page, err)
	own.After, own.ExcludeSelf = page.Next, true
	errorIs(t, errOf(c.Search(ctx, own)), db.ErrInvalid)
	coded := db.Query{Code: make([]byte, 2), K: 2}
	coded.After = need(c.Search(ctx, coded))(t).Next
	dbkit.MustTrain(t, c, dbkit.TinyTraining(2))
	errorIs(t, errOf(c.Search(ctx, coded)), db.ErrInvalid, "space 2")
}

// costs fails if f allocates more than so many bytes.
func costs(t *testing.T, what string, most uint64, f func()) {
	t.Helper()
	before := allocated()
	f()
	n := allocated() - before
	failIf(t, n > most, "%s: %d KiB allocated, at most %d are expected", what, n>>10, most>>10)
}

// hostile has a learned collection of 200 items with an indexed field, and one of 9,000 items of a few codes.
func hostile(t *testing.T) (learned, codes *db.Collection) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	t.Cleanup(func() { dbkit.MustClose(t, d) })
	schema := dbkit.PairsSchema
	schema.Fields = []db.Field{{Name: "year", Type: db.Int, Indexed: true},
		{Name: "title", Type: db.String, Indexed: true}}
	c := need(d.CreateCollection(ctx, "main", schema))(t)
	items := dbkit.Pairs(200, synth.Config{})
	for i, it := range items {
		it.Fields = map[string]any{"year": i, "title": fmt.Sprint("t", i)}
	}
	train(t, c, items, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	codes = need(d.CreateCollection(ctx, "codes", db.Schema{Bits: 16}))(t)
	given := made(9000, func(i int) *db.Item { return &db.Item{Code: []byte{byte(i % 3), byte(i % 5)}} })
	putAll(t, codes, given)
	return c, codes
}

// Numbers of any size cost no more than there are items.
func TestAnswersAreNoLongerThanThereAreItems(t *testing.T) {
	effort.Slow(t)
	c, codes := hostile(t)
	const each = 1 << 10 // bytes an item
	for _, k := range []int{1 << 31, math.MaxInt - 1, math.MaxInt} {
		for r := db.RerankProjection; r <= db.RerankAsymmetric; r++ {
			for _, where := range []string{"", "year >= 0"} {
				costs(t, "search", 4<<20, func() {
					res, err := c.Search(ctx, db.Query{Key: "k7", From: "text", To: "image", K: k,
						Where: where, Rerank: r})
					failIf(t, err != nil || len(res.Hits) != 200 || res.Next != "", "k = %d, %v: %v", k, r,
						err)
				})
			}
		}
		for _, plan := range []db.Plan{db.PlanAuto, db.PlanScan, db.PlanMemory, db.PlanFilter,
			db.PlanBlockScan} {
			costs(t, "codes", 9000*each, func() {
				res, err := codes.Search(ctx, db.Query{Key: "7", K: k, Plan: plan})
				failIf(t, err != nil || len(res.Hits) != 9000 || res.Next != "", "k = %d, plan %v: %v", k,
					plan, err)
			})
		}
	}
	for _, radius := range []int{16, 17, 1 << 31, math.MaxInt} {
		costs(t, "radius", 9000*each, func() {
			gives(t, 9000, radius)(dbkit.CountWithin(codes, db.Query{Key: "7"}, radius))
			runs, err := codes.SearchRadius(ctx, db.Query{Key: "7"}, radius)
			stopIf(t, err != nil || runs.Total() != 9000, "radius %d: %v", radius, err)
			defer runs.Close()
			res, err := runs.First(ctx, math.MaxInt)
			failIf(t, err != nil || len(res.Hits) != 9000, "radius %d: %v", radius, err)
			_, res, err = dbkit.Explain(ctx, codes, db.Query{Key: "7", K: math.MaxInt}, radius)
			failIf(t, err != nil || res.Total != 9000, "radius %d, explained: %v", radius, err)
		})
	}
	queries := make([]db.Query, 20_000)
	for i := range queries {
		queries[i] = db.Query{Key: fmt.Sprint(i % 9000), K: 1}
	}
	costs(t, "many queries", 20_000*8<<10, func() {
		res, err := codes.SearchAll(ctx, queries)
		failIf(t, err != nil || len(res) != len(queries), "%v", err)
	})
	found, err := c.Evaluate(ctx, db.Evaluation{
		Queries: map[string][][]float32{"text": {make([]float32, dbkit.PairsSchema.Modalities[1].Dim)}},
		Labels:  [][]string{{"c0"}}, Top: math.MaxInt,
	})
	failIf(t, err != nil && !errors.Is(err, db.ErrInvalid), "evaluate with the largest top: %v, %v", found,
		err)
}

// What makes no sense is refused, in a few words, whatever its length.
func TestHostileQueriesAreRefused(t *testing.T) {
	effort.Slow(t)
	c, codes := hostile(t)
	dim := dbkit.PairsSchema.Modalities[1].Dim
	odd := func(x float64) []float32 {
		v := make([]float32, dim)
		v[dim-1] = float32(x)
		return v
	}
	long := strings.Repeat("x", 16<<20)
	cursor := func() string { return need(codes.Search(ctx, db.Query{Key: "7", K: 3}))(t).Next }()
	for name, q := range map[string]db.Query{
		"the least k":         {Key: "k1", K: math.MinInt},
		"no plan":             {Key: "k1", Plan: 99},
		"everything":          {Key: "k1", Code: []byte{1}, Vector: odd(1)},
		"NaN":                 {From: "text", Vector: odd(math.NaN())},
		"Inf":                 {From: "text", Vector: odd(math.Inf(-1))},
		"no dimensions":       {From: "text", Vector: []float32{}},
		"too many dimensions": {From: "text", Vector: make([]float32, 1<<20)},
		"a sparse lie": {From: "text", Sparse: &db.Sparse{Index: []uint32{math.MaxUint32},
			Value: []float32{1}}},
		"a sparse NaN": {From: "text", Sparse: &db.Sparse{Index: []uint32{0},
			Value: []float32{float32(math.NaN())}}},
		"a long modality":      {From: long, Vector: odd(1)},
		"a long target":        {Key: "k1", To: long},
		"a short code":         {Code: []byte{}},
		"a long code":          {Code: make([]byte, 1<<20)},
		"an expression of MBs": {Key: "k1", Where: "year IN (" + strings.Repeat("1,", 5<<20) + "1)"},
		"parentheses": {Key: "k1",
			Where: strings.Repeat("(", 100_000) + "year = 1" + strings.Repeat(")", 100_000)},
		"parentheses that fit": {Key: "k1", Where: strings.Repeat("(", 101) + "year = 1" + strings.Repeat(
			")", 101)},
		"negations":             {Key: "k1", Where: strings.Repeat("NOT ", 10_000) + "year = 1"},
		"a long field":          {Key: "k1", Where: strings.Repeat("x", 60_000) + " = 1"},
		"no UTF-8":              {Key: "k1", Where: "title = '\xff'"},
		"a cursor of strangers": {Key: "k1", After: cursor},
		"a cursor of noise":     {Key: "k1", After: strings.Repeat("A", 1<<20)},
		"half a cursor":         {Key: "k1", After: cursor[:len(cursor)/2]},
	} {
		check := func(how string, err error) {
			failIf(t, !errors.Is(err, db.ErrInvalid) || len(err.Error()) > 1<<10, "%s, %s: %.300v", name, how,
				err)
		}
		costs(t, name, 8<<20, func() {
			_, err := c.Search(ctx, q)
			check("search", err)
			_, err = c.SearchRadius(ctx, q, 3)
			check("radius", err)
			_, _, err = dbkit.Explain(ctx, c, q, -1)
			check("explain", err)
			_, err = c.SearchAll(ctx, []db.Query{{Key: "k1"}, q})
			check("all", err)
		})
	}
	for name, err := range map[string]error{
		"a radius below 0": errOf(c.SearchRadius(ctx, db.Query{Key: "k1"}, math.MinInt)),
		"a count below 0":  errOf(dbkit.CountWithin(c, db.Query{Key: "k1"}, -1)),
		"rows":             errOf(c.Train(ctx, db.TrainOptions{Rows: math.MinInt})),
		"bits":             errOf(c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 1 << 40}})),
		"anchors":          errOf(c.Train(ctx, db.TrainOptions{Options: fit.Options{Anchors: 1e9}})),
		"all anchors":      errOf(c.Train(ctx, db.TrainOptions{Options: fit.Options{Anchors: math.MaxInt}})),
		"anchors below 0":  errOf(c.Train(ctx, db.TrainOptions{Options: fit.Options{Anchors: math.MinInt}})),
		"sweeps":           errOf(c.Train(ctx, db.TrainOptions{Options: fit.Options{Sweeps: 1e9}})),
		"sweeps below 0":   errOf(c.Train(ctx, db.TrainOptions{Options: fit.Options{Sweeps: -1}})),
		"delta":            errOf(c.Train(ctx, db.TrainOptions{Options: fit.Options{Delta: math.NaN()}})),
		"gamma": errOf(c.Train(ctx,
			db.TrainOptions{Options: fit.Options{Gamma: map[string]float64{"text": math.Inf(1)}}})),
		"a map": errOf(
			c.Train(ctx, db.TrainOptions{Options: fit.Options{Map: map[string]model.MapKind{"text": 200}}})),
		"features": errOf(c.Train(ctx,
			db.TrainOptions{Options: fit.Options{Features: map[string]model.FeatureKind{"text": 200}}})),
		"a teacher": errOf(c.Update(ctx, db.UpdateOptions{Teacher: -5})),
		"a rate":    errOf(c.Reindex(ctx, db.ReindexOptions{Rate: math.MinInt})),
		"labels of queries": errOf(c.Evaluate(ctx, db.Evaluation{Labels: [][]string{{"a"}},
			Top: math.MinInt})),
		"a count by MBs":    errOf(c.Count(ctx, long)),
		"a deletion by MBs": errOf(c.DeleteWhere(ctx, long)),
	} {
		failIf(t, !errors.Is(err, db.ErrInvalid) || len(err.Error()) > 1<<10, "%s: %.300v", name, err)
	}
	costs(t, "long names", 1<<20, func() {
		for name, err := range map[string]error{
			"get":        errOf(c.Get(ctx, long)),
			"search":     errOf(c.Search(ctx, db.Query{Key: long})),
			"collection": errOf(db.Of(c).Collection(long)),
			"drop":       db.Of(c).DropCollection(ctx, long),
		} {
			failIf(t, !errors.Is(err, db.ErrNotFound) || len(err.Error()) > 1<<10, "%s: %.300v", name, err)
		}
	})
	// The longest expression that is possible is answered.
	in := "year IN (" + strings.Repeat("1,", (60<<10)/2) + "1)"
	holds(t, c, 1, in)
}

// The largest numbers that are possible give an answer or an error.
func TestLargestVectors(t *testing.T) {
	effort.Slow(t)
	c, _ := hostile(t)
	for _, x := range []float32{math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32} {
		v := make([]float32, dbkit.PairsSchema.Modalities[1].Dim)
		for i := range v {
			v[i] = x
		}
		for r := db.RerankProjection; r <= db.RerankAsymmetric; r++ {
			_, err := c.Search(ctx, db.Query{From: "text", Vector: v, Rerank: r})
			failIf(t, err != nil && !errors.Is(err, db.ErrInvalid), "%g, %v: %v", x, r, err)
		}
		item := &db.Item{Key: fmt.Sprint(x), Labels: []string{"c0"}, Vectors: map[string][]float32{"text": v}}
		_, err := c.Put(ctx, item)
		failIf(t, err != nil && !errors.Is(err, db.ErrInvalid), "%g: %v", x, err)
	}
	fine(t, errOf(c.Update(ctx, db.UpdateOptions{})))
	fine(t, errOf(c.Search(ctx, db.Query{Key: "k7"})))
}

// Options of any size open a database.
func TestOptionsOfAnySize(t *testing.T) {
	for _, n := range []int64{math.MinInt64, -1, 1, math.MaxInt64} {
		mem := vfs.NewMem()
		for range 2 {
			opts := &db.Options{FS: mem}
			for _, field := range reflect.ValueOf(opts).Elem().Fields() {
				if field.CanInt() {
					field.SetInt(n)
				}
			}
			d, err := db.Open("db", opts)
			must(t, err, n)
			c, err := d.Collection("main")
			if err != nil {
				c, err = d.CreateCollection(ctx, "main", db.Schema{Bits: 8})
			}
			if err == nil {
				_, err = c.Put(ctx, &db.Item{Key: "k", Code: []byte{1}})
			}
			if err == nil {
				_, err = c.Search(ctx, db.Query{Key: "k"})
			}
			err = errors.Join(err, d.Close())
			failIf(t, err != nil, "%d: %v", n, err)
		}
	}
}

// A context that has ended ends everything that takes one.
func TestEndedContextEndsEverything(t *testing.T) {
	t.Parallel()
	c, _ := hostile(t)
	d := db.Of(c)
	runs := need(c.SearchRadius(ctx, db.Query{Key: "k7"}, 32))(t)
	defer runs.Close()
	ctx := cancelled
	dim := dbkit.PairsSchema.Modalities[1].Dim
	one := db.Evaluation{Queries: map[string][][]float32{"text": {make([]float32, dim)}},
		Labels: [][]string{{"c0"}}}
	errs := map[string]error{
		"put":              errOf(c.Put(ctx, &db.Item{Key: "new"})),
		"merge":            errOf(c.Merge(ctx, &db.Item{Key: "k1"})),
		"delete":           errOf(c.Delete(ctx, "k1")),
		"delete where":     errOf(c.DeleteWhere(ctx, "year = 1")),
		"get":              errOf(c.Get(ctx, "k1")),
		"create":           errOf(d.CreateCollection(ctx, "x", dbkit.PairsSchema)),
		"alter":            c.Alter(ctx, db.Alteration{AddFields: []db.Field{place}}),
		"drop":             d.DropCollection(ctx, "codes"),
		"drop space":       c.DropSpace(ctx, 1),
		"activate":         c.Activate(ctx, 1),
		"rollback":         errOf(c.Rollback(ctx)),
		"restore revision": errOf(c.RestoreRevision(ctx, 1, 1)),
		"train":            errOf(c.Train(ctx, db.TrainOptions{})),
		"reindex":          errOf(c.Reindex(ctx, db.ReindexOptions{})),
		"update":           errOf(c.Update(ctx, db.UpdateOptions{})),
		"search":           errOf(c.Search(ctx, db.Query{Key: "k7"})),
		"search all":       errOf(c.SearchAll(ctx, []db.Query{{Key: "k7"}})),
		"radius":           errOf(c.SearchRadius(ctx, db.Query{Key: "k7"}, 3)),
		"count where":      errOf(c.Count(ctx, "year > 3")),
		"spaces":           errOf(c.Spaces(ctx)),
		"evaluate":         errOf(c.Evaluate(ctx, one)),
		"compact":          d.Compact(ctx),
		"verify": errOf(d.Verify(ctx, db.VerifyOptions{},
			func(report.Finding) error { return nil })),
		"first": errOf(runs.First(ctx, 3)),
	}
	_, _, err := dbkit.Explain(ctx, c, db.Query{Key: "k7"}, -1)
	errs["explain"] = err
	res, _ := runs.First(ctx, 3)
	failIf(t, res != nil, "first: %+v beside an error", res)
	var e error
	for _, err := range c.Items(ctx, "") {
		e = err
	}
	errs["items"], e = e, nil
	for _, err := range c.Items(ctx, "year > 3") {
		e = err
	}
	errs["items where"], e = e, nil
	for _, err := range c.Codes(ctx, "") {
		e = err
	}
	errs["codes"], e = e, nil
	for _, err := range runs.Hits(ctx) {
		e = err
	}
	errs["hits"], e = e, nil
	for _, err := range runs.All(ctx) {
		e = err
	}
	errs["runs"] = e
	errorsAre(t, context.Canceled, errs)
}
