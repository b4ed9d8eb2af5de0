package merge_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/merge"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/shard"
)

// paged are queries whose answers are read page by page, with their radius.
func paged(stored, fresh []*db.Item) map[string]struct {
	q      db.Query
	radius int
} {
	x := fresh[0].Vectors["image"]
	queries := map[string]struct {
		q      db.Query
		radius int
	}{
		"where": {db.Query{From: "image", Vector: x, Where: "year >= 2002", Rerank: db.RerankProjection},
			-1},
		"radius":  {db.Query{From: "image", Vector: x, Rerank: db.RerankProjection}, 7},
		"similar": {db.Query{From: "image", Vector: x, Rerank: db.RerankProjection, MinSimilarity: .2}, -1},
		"code":    {db.Query{Code: stored[1].Code}, -1},
		"key":     {db.Query{Key: stored[1].Key, From: "image", Rerank: db.RerankProjection}, -1},
		"itself":  {db.Query{Key: stored[1].Key, ExcludeSelf: true}, 9},
	}
	for _, o := range []db.Rerank{db.RerankAuto, db.RerankProjection, db.RerankNone, db.RerankAsymmetric} {
		queries[o.String()] = struct {
			q      db.Query
			radius int
		}{db.Query{From: "image", Vector: x, Rerank: o}, -1}
	}
	return queries
}

// Pages to the end are the whole answer: the same hits in the same order as one page of all, whatever
// the sizes of pages and of the answers that they are made of.
func TestPagesAreTheWholeAnswer(t *testing.T) {
	dbkit.LongTest(t)
	for n, x := range collections() {
		if x.name == "a code for each modality" {
			continue // these queries name no target
		}
		t.Run(x.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, uint64(n)))
			c := x.cut(t, 300, 5)
			stored := dbkit.AllItems(t, c.one)
			for name, query := range paged(stored, pairs(1, 0, 77)) {
				q := query.q
				q.K = len(stored)
				want, err := first(c.one, q, query.radius)
				if refused(err) && x.train == nil {
					continue
				}
				if err != nil {
					t.Fatal(name, err)
				}
				all, end, err := c.page(t, q, query.radius, merge.Cursor{}, merge.Want{K: q.K})
				if err != nil {
					t.Fatal(name, err)
				}
				if !end.Done() || all.Next != "" || len(all.Hits) != len(want.Hits) ||
					!slices.Equal(keys(all.Hits), keys(want.Hits)) {
					t.Fatalf("%s: %d hits, not %d; next %q", name, len(all.Hits), len(want.Hits), all.Next)
				}
				var got []string
				var at merge.Cursor
				for pages := 0; !at.Done(); pages++ {
					k := 1 + r.IntN(40)
					answers, err := c.ask(t, q, query.radius, at, 1+r.IntN(k)) // often too few for a page
					if err != nil {
						t.Fatal(name, err)
					}
					p, next, err := merge.Page(answers, at, merge.Want{K: k, Self: q.Key})
					if err != nil {
						t.Fatal(name, err)
					}
					if len(p.Hits) == 0 && !next.Done() || len(p.Hits) > k || p.Total != want.Total {
						t.Fatalf("%s: a page of %d hits of %d, total %d of %d", name, len(p.Hits), k, p.Total,
							want.Total)
					}
					got = append(got, inOrder(p.Hits)...)
					if next.Done() != (p.Next == "") {
						t.Fatalf("%s: next is %q", name, p.Next)
					}
					if at, err = merge.ParseCursor(next.String(), len(c.shards)); err != nil {
						t.Fatal(name, err)
					}
				}
				if !slices.Equal(got, inOrder(all.Hits)) {
					t.Fatalf("%s: pages have\n%v\nnot\n%v", name, got, inOrder(all.Hits))
				}
			}
		})
	}
}

// Items that are deleted between pages, those at the place of a cursor among them, neither move others
// out of the pages that follow nor into two of them.
func TestPagesWhileItemsGo(t *testing.T) {
	dbkit.LongTest(t)
	for n, x := range collections() {
		if x.name == "a code for each modality" {
			continue
		}
		t.Run(x.name, func(t *testing.T) {
			stored := pairs(300, x.missing, 305) // as cut makes them
			for name, query := range paged(coded(stored), pairs(1, 0, 77)) {
				if query.q.Key != "" || query.q.Code != nil {
					continue
				}
				if x.train == nil && name != "auto" {
					continue
				}
				r := rand.New(rand.NewPCG(4, uint64(n)))
				c := x.cut(t, 300, 5)
				q := query.q
				q.K = 300
				all, _, err := c.page(t, q, query.radius, merge.Cursor{}, merge.Want{K: q.K})
				if err != nil {
					t.Fatal(name, err)
				}
				order := inOrder(all.Hits)
				tie := map[string]int{} // which of the ties of the answer a key is in
				for i := range all.Hits {
					tie[order[i]] = i
					if i > 0 && tied(&all.Hits[i-1], &all.Hits[i]) {
						tie[order[i]] = tie[order[i-1]]
					}
				}
				var got []string
				gone := map[string]bool{}
				for at := (merge.Cursor{}); !at.Done(); {
					var p *db.Result
					if p, at, err = c.page(t, q, query.radius, at,
						merge.Want{K: 1 + r.IntN(30)}); err != nil {
						t.Fatal(name, err)
					}
					for _, h := range p.Hits {
						if gone[h.Key] {
							t.Fatalf("%s: %q has been deleted", name, h.Key)
						}
					}
					got = append(got, inOrder(p.Hits)...)
					for range 4 {
						key := order[r.IntN(len(order))]
						if r.IntN(2) == 0 && len(got) > 0 {
							key = got[len(got)-1] // where the cursor of its shard is
						}
						if !gone[key] {
							c.delete(t, key)
							gone[key] = true
						}
					}
				}
				var want []string // all that there were, but for those that went before their page came
				for _, key := range order {
					if !gone[key] || slices.Contains(got, key) {
						want = append(want, key)
					}
				}
				// In a tie each shard has its own order, so what is left of it may come in another one.
				if !slices.IsSortedFunc(got, func(a, b string) int { return tie[a] - tie[b] }) {
					t.Fatalf("%s: pages have\n%v\nnot\n%v", name, got, want)
				}
				if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
					t.Fatalf("%s: pages have\n%v\nnot\n%v", name, got, want)
				}
			}
		})
	}
}

// coded gives the item whose code is asked for some code: the queries by code are left out.
func coded(items []*db.Item) []*db.Item {
	own := slices.Clone(items)
	first := *own[1]
	first.Code = make([]byte, 2)
	own[1] = &first
	return own
}

// Hits of a shard that does not answer come later: none is lost, and none comes twice.
func TestShardsThatAreMissing(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	c := collections()[0].cut(t, 300, 6)
	q := db.Query{From: "image", Vector: pairs(1, 0, 77)[0].Vectors["image"], Rerank: db.RerankProjection,
		K: 300}
	want, err := first(c.one, q, -1)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		var got []string
		partial, empty := 0, 0
		for at := (merge.Cursor{}); !at.Done(); {
			k := 1 + r.IntN(20)
			answers, err := c.ask(t, q, -1, at, k)
			if err != nil {
				t.Fatal(err)
			}
			missing := false
			for i := range answers {
				if answers[i] != nil && r.IntN(3) == 0 {
					answers[i], missing = nil, true
				}
			}
			p, next, err := merge.Page(answers, at, merge.Want{K: k})
			if err != nil {
				t.Fatal(err)
			}
			if missing {
				partial++
			}
			if len(p.Hits) == 0 {
				empty++
			}
			if p.Next != next.String() && !next.Done() {
				t.Fatalf("next is %q, not %q", p.Next, next)
			}
			got = append(got, inOrder(p.Hits)...)
			at = next
			if empty > 1000 {
				t.Fatal("no page has hits any more")
			}
		}
		slices.Sort(got)
		if partial == 0 || !slices.Equal(got, keys(want.Hits)) {
			t.Fatalf("%d hits of %d, %d pages without some shard", len(got), len(want.Hits), partial)
		}
	}
	// All are missing from the start: a cursor that is where it was, and one that can be sent.
	p, at, err := merge.Page(make([]*db.Result, 6), merge.Cursor{}, merge.Want{K: 3})
	if err != nil || len(p.Hits) != 0 || at.Done() || p.Next == "" {
		t.Fatalf("%+v, %v", p, err)
	}
	if again, err := merge.ParseCursor(p.Next, 6); err != nil || again.After(2) != "" || again.Ended(2) ||
		again.String() != p.Next {
		t.Errorf("%v, %v", again, err)
	}
}

// Keys are where the tests think they are.
func TestShardsAreCutByKey(t *testing.T) {
	c := collections()[3].cut(t, 100, 3)
	for i, s := range c.shards {
		for _, it := range dbkit.AllItems(t, s) {
			if shard.Of(it.Key, 3) != i {
				t.Errorf("%q is in shard %d", it.Key, i)
			}
		}
	}
}
