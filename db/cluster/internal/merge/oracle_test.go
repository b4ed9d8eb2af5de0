package merge_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/merge"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/model"
)

var orders = []db.Rerank{db.RerankAuto, db.RerankProjection, db.RerankNone, db.RerankAsymmetric}

// wheres are filters, of which some leave nothing.
var wheres = []string{"", "", "year >= 2002", "label = 'class1'", "NOT label = 'class2' AND new = true",
	"label = 'class3' AND year = 2001", "title = 'none has it'"}

// A collection is how the items of a test come to be searched.
type collection struct {
	name    string
	missing float64
	train   *db.TrainOptions // nil: answers are by vectors
}

func collections() []collection {
	return []collection{
		{"all have both", 0, &db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20}}},
		{"some lack one", .25, &db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20}}},
		{"without labels", 0, &db.TrainOptions{Options: fit.Options{Bits: 16, Method: model.MethodCCAITQ}}},
		{"without a model", .25, nil},
	}
}

func (x collection) cut(t testing.TB, n, shards int) *cut {
	c := cutInto(t, schema, pairs(n, x.missing, uint64(n+shards)), shards)
	if x.train != nil {
		c.train(t, *x.train)
	}
	return c
}

// Pages of shards are those of one database with the same items, in every order and however a query
// starts.
func TestShardsAnswerAsOne(t *testing.T) {
	dbkit.LongTest(t)
	for n, x := range collections() {
		t.Run(x.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			checked := map[db.Rerank]int{}
			for _, shards := range []int{1, 3, 8} {
				c := x.cut(t, 400, shards)
				stored := dbkit.AllItems(t, c.one)
				fresh := pairs(60, .3, 99)
				for range 500 {
					q, radius := someQuery(r, stored, fresh)
					what := fmt.Sprintf("%d shards: %+v within %d", shards, q, radius)
					want, err := first(c.one, q, radius)
					if refused(err) {
						continue // a shard refuses it as well, or would answer what has no meaning
					}
					if err != nil {
						t.Fatal(what, err)
					}
					got, _, err := c.page(t, q, radius, merge.Cursor{}, merge.Want{K: q.K})
					if err != nil {
						t.Fatal(what, err)
					}
					checked[want.Rerank]++
					compare(t, what, want, got)
				}
			}
			for _, o := range orders {
				if o == db.RerankAuto && x.missing > 0 && x.train != nil ||
					o != db.RerankAuto && x.train == nil {
					continue
				}
				if checked[o] < 20 {
					t.Errorf("order %v: %d answers", o, checked[o])
				}
			}
		})
	}
}

// someQuery makes a query, that may make no sense.
func someQuery(r *rand.Rand, stored, fresh []*db.Item) (q db.Query, radius int) {
	q = db.Query{K: 1 + r.IntN(50), Rerank: orders[r.IntN(len(orders))], Where: wheres[r.IntN(len(wheres))]}
	q.From = []string{"image", "text"}[r.IntN(2)]
	q.To = []string{"", "image", "text"}[r.IntN(3)]
	if r.IntN(4) == 0 {
		q.MinSimilarity = r.Float32()
	}
	switch it := stored[r.IntN(len(stored))]; r.IntN(5) {
	case 0:
		q.Key, q.ExcludeSelf = it.Key, r.IntN(2) == 0
		if q.To == "" && len(it.Code) > 0 && r.IntN(2) == 0 {
			q.From = ""
		}
		if q.From != "" && it.Vectors[q.From] == nil && len(it.Code) == 0 {
			q.Key, q.ExcludeSelf = "", false
			q.Vector = []float32{1} // refused
		}
	case 1:
		q.From = ""
		if q.Code = it.Code; q.Code == nil {
			q.Code = []byte{} // refused
		}
	default:
		for q.Vector == nil {
			q.Vector = fresh[r.IntN(len(fresh))].Vectors[q.From]
		}
	}
	if radius = -1; r.IntN(3) == 0 {
		radius = r.IntN(14)
	}
	return q, radius
}

// Codes that programs bring are merged as others are: by distance, and all of one distance tie.
func TestCodesOnly(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	items := dbkit.CodeItems(1000, 16, 1, func(i int) string { return fmt.Sprint("k", i*7919%1000) })
	c := cutInto(t, db.Schema{Bits: 16}, items, 5)
	for range 300 {
		q := db.Query{K: 1 + r.IntN(50), Code: items[r.IntN(len(items))].Code}
		q.Rerank = []db.Rerank{db.RerankProjection, db.RerankNone, db.RerankAsymmetric}[r.IntN(3)]
		if r.IntN(3) == 0 {
			q.Code, q.Key, q.ExcludeSelf = nil, items[r.IntN(len(items))].Key, r.IntN(2) == 0
		}
		radius := -1
		if r.IntN(2) == 0 {
			radius = r.IntN(8)
		}
		what := fmt.Sprintf("%+v within %d", q, radius)
		want, err := first(c.one, q, radius)
		if err != nil {
			t.Fatal(what, err)
		}
		got, _, err := c.page(t, q, radius, merge.Cursor{}, merge.Want{K: q.K})
		if err != nil {
			t.Fatal(what, err)
		}
		compare(t, what, want, got)
		if q.Key != "" && !q.ExcludeSelf && (want.Hits[0].Key != q.Key || got.Hits[0].Key != q.Key) {
			t.Fatalf("%s: the item itself is not the first hit", what)
		}
	}
}

// Answers by vectors are merged by any metric, also where To names a modality of the same space.
func TestMetrics(t *testing.T) {
	for _, metric := range []db.Metric{db.Cosine, db.Dot, db.L2} {
		own := db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 8, Metric: metric},
			{Name: "text", Dim: 8, SpaceOf: "image"}}}
		items := pairs(300, .2, 4)
		for i, it := range items {
			vectors := map[string][]float32{"image": it.Vectors["image"]}
			if it.Fields = nil; vectors["image"] == nil {
				vectors = map[string][]float32{"text": items[(i+1)%len(items)].Vectors["image"]}
			}
			if vectors["text"] == nil {
				delete(vectors, "text")
			}
			it.Vectors = vectors
		}
		c := cutInto(t, own, items, 4)
		for i, x := range pairs(60, 0, 88) {
			q := db.Query{From: "image", Vector: x.Vectors["image"], To: []string{"", "image", "text"}[i%3],
				K: 1 + i}
			if i%4 == 0 {
				q.MinSimilarity = .1
			}
			want, err := first(c.one, q, -1)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := c.page(t, q, -1, merge.Cursor{}, merge.Want{K: q.K})
			if err != nil {
				t.Fatal(err)
			}
			compare(t, fmt.Sprintf("%s: %+v", metric, q), want, got)
		}
	}
}
