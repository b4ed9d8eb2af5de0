package db_test

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/fit"
)

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
		for _, it := range items[labelled:] {
			it.Labels = nil
		}
		putAll(t, c, dbkit.Pairs(60, synth.Config{Classes: 4, Noise: 3}))
		dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 24}})
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
	_, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(40, synth.Config{})
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16}})
	far := make([]float32, 8)
	far[0] = 1e6
	for i := range 10 { // so far from everything that nothing can be said of them
		need(c.Put(ctx, &db.Item{Key: fmt.Sprint("far", i), Vectors: map[string][]float32{"image": far}}))(t)
	}
	need(c.Put(ctx, &db.Item{Key: "text", Vectors: map[string][]float32{"text": items[0].Vectors["text"]}}))(
		t)
	s, err := c.Stats()
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
		_, _, eerr := tc.c.Explain(ctx, tc.q, 3)
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

// A cursor from before a training says that the codes are others now.
func TestCursorOfAnotherSpace(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(40, synth.Config{})
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16}})
	q := db.Query{Code: []byte{1, 2}}
	res := need(c.Search(ctx, q))(t)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16}})
	q.After = res.Next
	errorIs(t, errOf(c.Search(ctx, q)), db.ErrInvalid, "space 2")
}

// Whatever stands in a cursor, with or without a good checksum: no panic, and never an item twice.
func FuzzCursor(f *testing.F) {
	d, c := dbkit.OpenCoded(f, 8)
	var items []*db.Item
	for i := range 40 {
		items = append(items, &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i % 16)}})
	}
	putAll(f, c, items)
	_ = d
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
	elsewhere := []string{"ExcludeSelf", "Space", "Revision", "Sparse", "Recall", "After"}
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
	dbkit.MustTrain(t, c, dbkit.TinyTraining(1))
	check("learned", db.Query{From: "image", To: "image", Vector: x["image"], MinSimilarity: .1,
		Rerank: db.RerankProjection})

	own := db.Query{Key: items[0].Key, K: 2}
	page, err := c.Search(ctx, own)
	stopIf(t, err != nil || page.Next == "", "%v, %v", page, err)
	own.After, own.ExcludeSelf = page.Next, true
	errorIs(t, errOf(c.Search(ctx, own)), db.ErrInvalid)
}
