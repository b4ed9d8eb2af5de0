package merge_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/merge"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/shard"
	"github.com/fddhdb/fddhdb/internal/synth"
)

var ctx = context.Background()

// A cut is one collection, and the same items in shards. The one is the oracle.
type cut struct {
	one    *db.Collection
	shards []*db.Collection
}

// schema has two modalities, and fields of all types.
var schema = db.Schema{
	Modalities: []db.Modality{{Name: "image", Dim: 8}, {Name: "text", Dim: 5}},
	Fields: []db.Field{
		{Name: "year", Type: db.Int, Indexed: true}, {Name: "title", Type: db.String},
		{Name: "price", Type: db.Float},
		{Name: "new", Type: db.Bool, Indexed: true}, {Name: "at", Type: db.Time, Indexed: true},
		{Name: "label", Type: db.String, Indexed: true},
	},
}

// pairs makes items for schema. A part of them, by missing, lacks a modality; some are equal but for the key.
func pairs(n int, missing float64, seed uint64) []*db.Item {
	items := dbkit.Pairs(n, synth.Config{Seed: seed, Classes: 6, LabelsPerItem: 2, Noise: .8,
		Missing: missing})
	for i, it := range items {
		it.Key = fmt.Sprint("k", i*7919%n) // keys and rows have different orders
		if i%5 == 0 {
			it.Labels = nil
		}
		if i%10 == 9 {
			it.Vectors, it.Labels = items[i-1].Vectors, items[i-1].Labels
		}
		it.Fields = map[string]any{}
		for f, value := range map[string]any{
			"year": 2000 + i%5, "title": fmt.Sprint("title ", i%11), "price": float64(i%4) - 1.5,
			"new": i%3 == 0,
			"at":  time.Date(2020, 1, 1+i%6, 1, 2, 3, 4000, time.UTC), "label": fmt.Sprint("size ", i%3),
		} {
			if (i+len(f))%4 != 0 {
				it.Fields[f] = value
			}
		}
	}
	return items
}

// cutInto puts the items into one database, and into so many shards.
func cutInto(t testing.TB, schema db.Schema, items []*db.Item, shards int) *cut {
	t.Helper()
	open := func(mine func(key string) bool) *db.Collection {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
		t.Cleanup(func() { dbkit.MustClose(t, d) })
		c, err := d.CreateCollection(ctx, "main", schema)
		if err != nil {
			t.Fatal(err)
		}
		var own []*db.Item
		for _, it := range items {
			if mine(it.Key) {
				own = append(own, it)
			}
		}
		dbkit.PutAll(t, d, c, own)
		return c
	}
	c := &cut{one: open(func(string) bool { return true })}
	for i := range shards {
		c.shards = append(c.shards, open(func(key string) bool { return shard.Of(key, shards) == i }))
	}
	return c
}

// train trains the one, and gives its model to the shards.
func (c *cut) train(t testing.TB, opt db.TrainOptions) {
	t.Helper()
	dbkit.MustTrain(t, c.one, opt)
	var file bytes.Buffer
	if err := c.one.ExportModel(ctx, &file); err != nil {
		t.Fatal(err)
	}
	for _, s := range c.shards {
		if _, err := s.ImportModel(ctx, bytes.NewReader(file.Bytes()), db.ImportModelOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// delete deletes an item in both.
func (c *cut) delete(t testing.TB, key string) {
	t.Helper()
	for _, x := range []*db.Collection{c.one, c.shards[shard.Of(key, len(c.shards))]} {
		if n, err := x.Delete(ctx, key); err != nil || n != 1 {
			t.Fatalf("%q: %d deleted, %v", key, n, err)
		}
	}
}

// first answers from one collection, within a radius unless it is negative.
func first(c *db.Collection, q db.Query, radius int) (*db.Result, error) {
	if radius < 0 {
		return c.Search(ctx, q)
	}
	return dbkit.FirstWithin(c, q, radius)
}

// forShard returns the query as a shard is asked. The shards that lack the item of a query by key get its
// vector, or its code.
func (c *cut) forShard(t testing.TB, q db.Query, i int) db.Query {
	t.Helper()
	if q.Key == "" || shard.Of(q.Key, len(c.shards)) == i {
		return q
	}
	it, err := c.one.Get(ctx, q.Key)
	if err != nil {
		t.Fatal(err)
	}
	q.Key, q.ExcludeSelf = "", false
	if q.Vector = it.Vectors[q.From]; q.Vector == nil {
		if q.Code = it.Code; q.Code == nil {
			t.Fatalf("%q has neither a vector of %q nor a code", it.Key, q.From)
		}
	}
	return q
}

// ask asks the shards that have more behind the cursor, for k hits each.
func (c *cut) ask(t testing.TB, q db.Query, radius int, from merge.Cursor, k int) ([]*db.Result, error) {
	t.Helper()
	answers := make([]*db.Result, len(c.shards))
	for i, s := range c.shards {
		own := c.forShard(t, q, i)
		own.K, own.Include, own.After = k, own.Include|db.IncludeCursor, from.After(i)
		if b, ok := from.Basis(); ok && own.Rerank == db.RerankAuto {
			own.Rerank = b.Rerank
		}
		if from.Ended(i) {
			if radius < 0 {
				continue
			}
			own.K = 1 // for its total
		}
		r, err := first(s, own, radius)
		if err != nil {
			return nil, fmt.Errorf("shard %d: %w", i, err)
		}
		answers[i] = r
	}
	return answers, nil
}

// page asks for a page and merges it.
func (c *cut) page(t testing.TB, q db.Query, radius int, from merge.Cursor,
	w merge.Want) (*db.Result, merge.Cursor, error) {
	t.Helper()
	answers, err := c.ask(t, q, radius, from, w.K)
	if err != nil {
		return nil, from, err
	}
	w.Self = q.Key
	return merge.Page(answers, from, w)
}

// same reports whether two numbers are equal, or both are none.
func same[F float32 | float64](a, b F) bool { return a == b || a != a && b != b }

// tied reports whether two hits tie.
func tied(a, b *db.Hit) bool {
	return a.Distance == b.Distance && same(a.Score, b.Score) && same(a.Similarity, b.Similarity)
}

// compare compares an answer with that of the one database: what decides is equal in each position, and so
// are the keys of those that tie. Of the last of these the answer may have others.
func compare(t testing.TB, what string, want, got *db.Result) {
	t.Helper()
	if len(want.Hits) != len(got.Hits) || want.Total != got.Total || (want.Next == "") != (got.Next == "") {
		t.Fatalf("%s: %d hits, total %d, next %q; not %d, %d, %q", what, len(got.Hits), got.Total, got.Next,
			len(want.Hits), want.Total, want.Next)
	}
	if want.Rerank != got.Rerank || (want.Space == 0) != (got.Space == 0) ||
		want.Approximate != got.Approximate {
		t.Fatalf("%s: order %v, space %d, approximate %v; not %v, %d, %v", what, got.Rerank, got.Space,
			got.Approximate, want.Rerank, want.Space, want.Approximate)
	}
	for i := range want.Hits {
		if !tied(&want.Hits[i], &got.Hits[i]) {
			t.Fatalf("%s: hit %d is %+v\nnot %+v", what, i, got.Hits[i], want.Hits[i])
		}
	}
	for i := 0; i < len(want.Hits); {
		from := i
		for i++; i < len(want.Hits) && tied(&want.Hits[from], &want.Hits[i]); i++ {
		}
		if i == len(want.Hits) && want.Next != "" {
			break // the tie may go on behind the answer
		}
		if a, b := keys(want.Hits[from:i]), keys(got.Hits[from:i]); !slices.Equal(a, b) {
			t.Fatalf("%s: hits %d to %d are %v, not %v", what, from, i, b, a)
		}
	}
}

// keys returns the keys of hits, sorted.
func keys(hits []db.Hit) []string {
	var keys []string
	for _, h := range hits {
		keys = append(keys, h.Key)
	}
	slices.Sort(keys)
	return keys
}

// inOrder returns the keys of hits.
func inOrder(hits []db.Hit) []string {
	var keys []string
	for _, h := range hits {
		keys = append(keys, h.Key)
	}
	return keys
}

// refused reports whether an error is one of a query that makes no sense.
func refused(err error) bool { return errors.Is(err, db.ErrInvalid) || errors.Is(err, db.ErrNoModel) }

var nan = math.NaN()
