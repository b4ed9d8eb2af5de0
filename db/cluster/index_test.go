package cluster_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

// All replicas index vectors, also those that come later, and a search has the recall that it asks for.
func TestVectorIndex(t *testing.T) {
	h := build(t, 1, 3, 2, 2)
	c := h.connect()
	photos, err := c.CreateCollection(t.Context(), "photos", db.Schema{Modalities: []db.Modality{
		{Name: "image", Dim: 128}, {Name: "words", Dim: 50, Sparse: true}}})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(5, 5))
	centres := make([][128]float64, 60)
	for i := range centres {
		for j := range centres[i] {
			centres[i][j] = r.NormFloat64()
		}
	}
	draw := func() []float32 {
		x, centre := make([]float32, 128), &centres[r.IntN(len(centres))]
		for i := range x {
			x[i] = float32(centre[i] + .3*r.NormFloat64())
		}
		return x
	}
	var items []*db.Item
	for i := range 16_000 {
		items = append(items, &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"image": draw()}})
	}
	importAll(t, photos, items)
	search := func(recall float64, x []float32) (keys map[string]bool, approximate bool) {
		t.Helper()
		res, err := photos.Search(t.Context(), cluster.Query{Query: db.Query{From: "image", Vector: x, K: 10,
			Recall: recall}})
		if err != nil || len(res.Hits) != 10 {
			t.Fatal(res, err)
		}
		keys = map[string]bool{}
		for _, hit := range res.Hits {
			keys[hit.Key] = true
		}
		return keys, res.Approximate
	}
	if _, approximate := search(.5, draw()); approximate {
		t.Error("without an index an answer is exact")
	}
	for _, modality := range []string{"words", "nosuch"} {
		if _, err := photos.IndexVectors(t.Context(), modality, 0, nil); !errors.Is(err, db.ErrInvalid) {
			t.Error(modality, err)
		}
	}
	last := int64(-1)
	x, err := photos.IndexVectors(t.Context(), "image", .8, func(stage string, done, total int64) {
		if last = done; total != 2 {
			t.Error(stage, done, total)
		}
	})
	if err != nil || x.Shards != 2 || x.Entries != len(items) || last != 2 || x.Recall != .8 {
		t.Fatalf("%+v, %d, %v", x, last, err)
	}
	found, of := 0, 0
	for range 50 {
		q := draw()
		exact, is := search(1, q)
		some, approximate := search(0, q)
		if is || !approximate {
			t.Fatalf("approximate: with recall 1 %v, by the index %v", is, approximate)
		}
		for key := range exact {
			if of++; some[key] {
				found++
			}
		}
	}
	if found*100 < of*75 {
		t.Errorf("%d of %d found", found, of)
	}
	// A replica that comes to a shard has it, too: by a backup, or by the log.
	from := c.Placement()[0].Nodes[0]
	to := "n0"
	for c.Placement()[0].Nodes[0] == to || c.Placement()[0].Nodes[1] == to {
		to = "n" + string(to[1]+1)
	}
	if err := c.Move(t.Context(), 0, from, to, nil); err != nil {
		t.Fatal(err)
	}
	for _, other := range c.Placement()[0].Nodes {
		if other != to {
			h.leave(other) // so that the new one is asked
		}
	}
	eventually(t, "the new replica has the index", func() bool {
		all, err := photos.VectorIndexes(t.Context())
		return err == nil && len(all) == 1 && all[0].Shards == 2 && all[0].Entries == len(items)
	})
	if err := photos.DropVectorIndex(t.Context(), "image"); err != nil {
		t.Fatal(err)
	}
	if err := photos.DropVectorIndex(t.Context(), "image"); !errors.Is(err, db.ErrNotFound) {
		t.Error(err)
	}
	eventually(t, "answers are exact again", func() bool {
		_, approximate := search(.5, draw())
		return !approximate
	})
	h.leave(to)
	d, err := db.Open(filepath.Join(h.dir, to, "shard-0000"), &db.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	own, err := d.Collection("photos")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := own.Stats(t.Context()); err != nil || len(s.VectorIndexes) > 0 {
		t.Error(s, err)
	}
}

// Where there are no vectors yet, nobody waits for an index of them.
func TestVectorIndexOfNothing(t *testing.T) {
	c := build(t, 1, 1, 2, 1).connect()
	empty, err := c.CreateCollection(t.Context(), "empty",
		db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 16}}})
	if err != nil {
		t.Fatal(err)
	}
	x, err := empty.IndexVectors(t.Context(), "image", 0, nil)
	if err != nil || x.Shards > 0 || len(x.Waiting) != 2 || x.Recall != .99 {
		t.Errorf("%+v, %v", x, err)
	}
	var items []*db.Item
	for i := range 100 {
		v := make([]float32, 16)
		v[i%16], v[i%7] = 1, float32(i)
		items = append(items, &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"image": v}})
	}
	importAll(t, empty, items) // now there are some, and asking again does not hear what was before
	if x, err := empty.IndexVectors(t.Context(), "image", 0, nil); err != nil || x.Shards != 2 ||
		x.Entries != 100 {
		t.Errorf("%+v, %v", x, err)
	}
}
