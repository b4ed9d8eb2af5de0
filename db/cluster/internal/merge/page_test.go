package merge_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/merge"
)

// plainOrder spells out the order across shards of each order of answers; space 0 is by vectors.
func plainOrder(space db.Space, o db.Rerank, a, b db.Hit) int {
	down := func(x, y float64) int { // the greatest first, NaN last
		switch {
		case x > y || !math.IsNaN(x) && math.IsNaN(y):
			return -1
		case x < y || math.IsNaN(x) && !math.IsNaN(y):
			return 1
		}
		return 0
	}
	distance := cmp.Compare(a.Distance, b.Distance)
	score := down(a.Score, b.Score)
	similarity := down(float64(a.Similarity), float64(b.Similarity))
	key := cmp.Compare(a.Key, b.Key)
	switch {
	case space == 0:
		return cmp.Or(similarity, key)
	case o == db.RerankAsymmetric:
		return cmp.Or(score, distance, similarity, key)
	}
	return cmp.Or(distance, score, similarity, key)
}

// made makes answers of so many hits, each in order.
func made(r *rand.Rand, space db.Space, o db.Rerank, shards, hits int) []*db.Result {
	answers := make([]*db.Result, shards)
	for i := range answers {
		a := &db.Result{Space: space, Revision: 3, Rerank: o, Total: r.IntN(100),
			Hits: make([]db.Hit, r.IntN(hits+1))}
		for j := range a.Hits {
			h := db.Hit{Key: fmt.Sprintf("%d of %d", r.IntN(1e9), i), Distance: r.IntN(4),
				Score: float64(r.IntN(3)), Similarity: float32(r.IntN(4)) / 4}
			if r.IntN(5) == 0 {
				h.Score = nan
			}
			if r.IntN(5) == 0 {
				h.Similarity = float32(nan)
			}
			a.Hits[j] = h
		}
		slices.SortFunc(a.Hits, func(x, y db.Hit) int { return plainOrder(space, o, x, y) })
		for j := range a.Hits {
			a.Hits[j].Cursor = fmt.Sprintf("shard%dbehind%d", i, j)
		}
		if n := len(a.Hits); n > 0 && r.IntN(2) == 0 {
			a.Next = a.Hits[n-1].Cursor
		}
		answers[i] = a
	}
	return answers
}

// A page is the first of all hits in order, up to where a shard has more that it did not give; the
// numbers of shards do not count.
func TestPageIsTheFirstOfAll(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for range 5000 {
		o, space := orders[r.IntN(len(orders))], db.Space(2)
		if o == db.RerankAuto && r.IntN(2) == 0 {
			space = 0
		}
		answers := made(r, space, o, 1+r.IntN(9), 8)
		k := 1 + r.IntN(20)
		var want []db.Hit
		total := 0
		for i, a := range answers {
			if r.IntN(8) == 0 && i > 0 {
				answers[i] = nil
				continue
			}
			want = append(want, a.Hits...)
			total += a.Total
		}
		slices.SortFunc(want, func(x, y db.Hit) int { return plainOrder(space, o, x, y) })
		for _, a := range answers { // nothing behind the last hit of a shard that has more
			if a != nil && a.Next != "" {
				last := a.Hits[len(a.Hits)-1]
				i := slices.IndexFunc(want, func(h db.Hit) bool { return h.Key == last.Key })
				if i >= 0 {
					want = want[:i+1]
				}
			}
		}
		want = want[:min(k, len(want))]
		got, at, err := merge.Page(answers, merge.Cursor{}, merge.Want{K: k})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(inOrder(want), inOrder(got.Hits)) || got.Total != total {
			t.Fatalf("order %v: %v\nnot %v", o, inOrder(got.Hits), inOrder(want))
		}
		taken := map[string]bool{}
		for _, h := range got.Hits {
			taken[h.Key] = true
		}
		for i, a := range answers {
			switch {
			case a == nil:
				if at.Ended(i) || at.After(i) != "" {
					t.Fatal("a shard that is missing has lost its place")
				}
			default:
				n := 0
				for n < len(a.Hits) && taken[a.Hits[n].Key] {
					n++
				}
				if end := n == len(a.Hits) && a.Next == ""; at.Ended(i) != end {
					t.Fatalf("shard %d: ended is %v", i, at.Ended(i))
				}
				if n > 0 && !at.Ended(i) && at.After(i) != a.Hits[n-1].Cursor || n == 0 && at.After(i) != "" {
					t.Fatalf("shard %d: behind %q after %d hits", i, at.After(i), n)
				}
			}
		}
		turned := slices.Clone(answers)
		r.Shuffle(len(turned), func(i, j int) { turned[i], turned[j] = turned[j], turned[i] })
		if again, _, err := merge.Page(turned, merge.Cursor{}, merge.Want{K: k}); err != nil ||
			!slices.Equal(inOrder(again.Hits), inOrder(got.Hits)) {
			t.Fatal("another numbering of shards gives another page", err)
		}
	}
}

// The item of the query comes before the others of its code, wherever these are; by vectors alone it has no
// place of its own.
func TestTheItemItself(t *testing.T) {
	hits := func(of ...db.Hit) *db.Result {
		return &db.Result{Hits: of}
	}
	const byCodes = "[near self like far]"
	for b, want := range map[merge.Basis]string{
		{Space: 1, Rerank: db.RerankAuto}: byCodes, {Space: 1, Rerank: db.RerankProjection}: byCodes,
		{Space: 1, Rerank: db.RerankNone}:       byCodes,
		{Space: 1, Rerank: db.RerankAsymmetric}: byCodes, {Rerank: db.RerankAuto}: "[far like near self]",
	} {
		answers := []*db.Result{
			hits(db.Hit{Key: "self", Distance: 2, Score: 5, Similarity: .1}),
			hits(db.Hit{Key: "near", Distance: 1, Score: 6, Similarity: .2}),
			hits(db.Hit{Key: "like", Distance: 2, Score: 5, Similarity: .8}),
			hits(db.Hit{Key: "far", Distance: 3, Score: 4, Similarity: .9}),
		}
		for _, a := range answers {
			a.Space, a.Rerank = b.Space, b.Rerank
		}
		got, _, err := merge.Page(answers, merge.Cursor{}, merge.Want{K: 9, Self: "self"})
		if err != nil || fmt.Sprint(inOrder(got.Hits)) != want {
			t.Errorf("%v: %v, not %s; %v", b, inOrder(got.Hits), want, err)
		}
	}
}

// A query by key has its item where one database has it, before more similar items of other shards.
func TestAQueryByKey(t *testing.T) {
	items := pairs(200, 0, 5)
	for i, it := range items { // two codes, so that many are more similar than the item itself may seem
		it.Labels = []string{fmt.Sprint("class", i%2)}
	}
	c := cutInto(t, schema, items, 4)
	c.train(t, *collections()[0].train)
	for _, it := range items[:50] {
		q := db.Query{Key: it.Key, From: "image", Rerank: db.RerankProjection, K: 20}
		want, err := first(c.one, q, -1)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := c.page(t, q, -1, merge.Cursor{}, merge.Want{K: q.K})
		if err != nil {
			t.Fatal(err)
		}
		compare(t, it.Key, want, got)
	}
}

func TestPageRefuses(t *testing.T) {
	hits := []db.Hit{{Key: "a", Cursor: "A"}, {Key: "b", Cursor: "B"}}
	answer := func() *db.Result {
		return &db.Result{Space: 1, Rerank: db.RerankNone,
			Hits: slices.Clone(hits)}
	}
	bare, far, odd, one := answer(), answer(), answer(), answer()
	bare.Hits[0].Cursor = ""
	far.Hits[0].Cursor = strings.Repeat("x", 256)
	odd.Rerank = 77
	one.Facets = []db.Facets{{By: "label"}}
	_, over3, err := merge.Page([]*db.Result{answer(), nil, nil}, merge.Cursor{}, merge.Want{K: 1})
	if err != nil {
		t.Fatal(err)
	}
	k1 := merge.Want{K: 1}
	for _, x := range []struct {
		what    string
		answers []*db.Result
		from    merge.Cursor
		w       merge.Want
	}{
		{"k = 0", []*db.Result{answer()}, merge.Cursor{}, merge.Want{}},
		{"no shards", nil, merge.Cursor{}, k1},
		{"a page of 65536 shards", make([]*db.Result, 1<<16), merge.Cursor{}, k1},
		{"over 3 shards, and 2 answers", []*db.Result{answer(), answer()}, over3, k1},
		{"shard 1: its hits have no cursors", []*db.Result{nil, bare}, merge.Cursor{}, k1},
		{"shard 0: a cursor of 256 bytes", []*db.Result{far}, merge.Cursor{}, k1},
		{"order Rerank(77)", []*db.Result{odd}, merge.Cursor{}, k1},
		{"shard 1 has 1 facets, shard 0 has 0", []*db.Result{answer(), one}, merge.Cursor{}, k1},
		{"hits without their items", []*db.Result{one}, merge.Cursor{}, k1},
	} {
		if _, _, err := merge.Page(x.answers, x.from, x.w); !refused(err) ||
			!strings.Contains(err.Error(), x.what) {
			t.Errorf("%v, not %s", err, x.what)
		}
	}
	if p, _, err := merge.Page([]*db.Result{bare}, merge.Cursor{}, merge.Want{K: 2}); err != nil ||
		len(p.Hits) != 2 {
		t.Errorf("a page that takes all hits needs none of their cursors: %v", err)
	}
	// Nothing of the others can be next for sure.
	p, at, err := merge.Page([]*db.Result{answer(), {Space: 1, Rerank: db.RerankNone, Next: "B"}},
		merge.Cursor{}, merge.Want{K: 2})
	if err != nil || len(p.Hits) != 0 || at.Done() || at.After(0) != "" || at.After(1) != "B" {
		t.Errorf("a shard that has more and gave nothing: %+v, %v", p, err)
	}
}

// An answer goes on only on the basis on which it has begun; one that is approximate makes all so.
func TestMismatch(t *testing.T) {
	answer := func(space db.Space, revision uint32, o db.Rerank) *db.Result {
		return &db.Result{Space: space, Revision: revision, Rerank: o,
			Hits: []db.Hit{{Key: "a", Cursor: "A"}, {Key: "b", Cursor: "B"}}}
	}
	usual := func() *db.Result { return answer(1, 4, db.RerankAuto) }
	_, _, err := merge.Page([]*db.Result{usual(), usual(), nil, usual(), answer(1, 3, db.RerankAuto),
		answer(1, 3, db.RerankProjection), usual(), answer(0, 0, db.RerankAuto)},
		merge.Cursor{}, merge.Want{K: 1})
	var e *merge.MismatchError
	want := "fddhdb: shards have answered differently: shards 0-1, 3, 6: space 1, revision 4, order auto; " +
		"shard 4: space 1, revision 3, order auto; shard 5: space 1, revision 3, order projection; shard 7: an answer by vectors"
	if !errors.As(err, &e) || err.Error() != want || e.Cursor != nil || len(e.Bases) != 7 {
		t.Fatalf("%v\nnot %s", err, want)
	}
	if b := e.Bases[3]; b != (merge.ShardBasis{Shard: 4, Basis: merge.Basis{Space: 1, Revision: 3,
		Rerank: db.RerankAuto}}) {
		t.Errorf("%+v", b)
	}
	_, at, err := merge.Page([]*db.Result{usual(), nil}, merge.Cursor{}, merge.Want{K: 1})
	if err != nil {
		t.Fatal(err)
	}
	if at, err = merge.ParseCursor(at.String(), 2); err != nil {
		t.Fatal(err)
	}
	if b, ok := at.Basis(); !ok || b != (merge.Basis{Space: 1, Revision: 4, Rerank: db.RerankAuto}) {
		t.Errorf("%+v", b)
	}
	_, _, err = merge.Page([]*db.Result{nil, answer(1, 5, db.RerankAuto)}, at, merge.Want{K: 1})
	if !errors.As(err, &e) || e.Cursor == nil || !strings.HasSuffix(err.Error(),
		"shard 1: space 1, revision 5, order auto; the cursor: space 1, revision 4, order auto") {
		t.Error(err)
	}
	approximate := answer(0, 0, db.RerankAuto)
	approximate.Approximate = true
	if p, _, err := merge.Page([]*db.Result{answer(0, 0, db.RerankAuto), approximate}, merge.Cursor{},
		merge.Want{K: 1}); err != nil || !p.Approximate {
		t.Error(p, err)
	}
}

// Where one shard alone has an item that lacks the modality, auto stands for another order there. That
// is found, and the order that one database chooses is there to ask for.
func TestAutoDiffers(t *testing.T) {
	items := pairs(120, 0, 9)
	delete(items[3].Vectors, "image")
	c := cutInto(t, schema, items, 4)
	c.train(t, *collections()[0].train)
	q := db.Query{From: "image", Vector: items[0].Vectors["image"], To: "text", K: 10}
	var e *merge.MismatchError
	if _, _, err := c.page(t, q, -1, merge.Cursor{}, merge.Want{K: 10}); !errors.As(err, &e) {
		t.Fatal(err)
	}
	want, err := first(c.one, q, -1)
	if err != nil || want.Rerank != db.RerankProjection {
		t.Fatal(want, err)
	}
	q.Rerank = db.RerankProjection
	got, _, err := c.page(t, q, -1, merge.Cursor{}, merge.Want{K: 10})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "projection", want, got)
}

// Hits of answers stay as they are.
func TestPageChangesNoAnswer(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	answers := made(r, 2, db.RerankProjection, 5, 8)
	var before []string
	for _, a := range answers {
		before = append(before, fmt.Sprintf("%+v", *a))
	}
	_, at, err := merge.Page(answers, merge.Cursor{}, merge.Want{K: 7})
	if err != nil {
		t.Fatal(err)
	}
	text := at.String()
	if _, _, err := merge.Page(answers, at, merge.Want{K: 7}); err != nil || at.String() != text {
		t.Fatal("a page has changed the cursor that it began with", err)
	}
	for i, a := range answers {
		if fmt.Sprintf("%+v", *a) != before[i] {
			t.Errorf("answer %d has changed", i)
		}
	}
}
