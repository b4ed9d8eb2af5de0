package command

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
)

// A busy collection is one that somebody else changes after its groups have been listed for the n-th time.
type busy struct {
	api.Collection
	lists, n int
	change   func(api.Collection)
}

func (c *busy) Groups(ctx context.Context, q db.GroupQuery) iter.Seq2[db.Group, error] {
	return func(yield func(db.Group, error) bool) {
		for g, err := range c.Collection.Groups(ctx, q) {
			if !yield(g, err) {
				return
			}
		}
		if c.lists++; c.lists == c.n {
			c.change(c.Collection)
		}
	}
}

// If an item, or the item that is kept for it, changes after the groups were found, dups deletes neither.
func TestDupsBesideAWriter(t *testing.T) {
	near := map[string][]float32{"image": {1, 2}}
	for name, change := range map[string]func(t *testing.T, c api.Collection){
		"another vector": func(t *testing.T, c api.Collection) {
			put(t, c, &db.Item{Key: "b", Vectors: map[string][]float32{"image": {-5, 1}}})
		},
		"the kept one is gone": func(t *testing.T, c api.Collection) {
			if _, err := c.Delete(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		},
		"a better one": func(t *testing.T, c api.Collection) {
			put(t, c, &db.Item{Key: "b", Vectors: near, Fields: map[string]any{"width": 9}})
		},
		"the kept one is another": func(t *testing.T, c api.Collection) {
			put(t, c, &db.Item{Key: "a", Vectors: map[string][]float32{"image": {2, -1}}})
		},
	} {
		for n := 1; n <= 2; n++ {
			d, err := db.Open(filepath.Join(t.TempDir(), "db"), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			at := api.Folder(d, nil)
			c, err := at.CreateCollection(t.Context(), "main", db.Schema{
				Modalities: []db.Modality{{Name: "image", Dim: 2}},
				Fields:     []db.Field{{Name: "width", Type: db.Int}}})
			if err != nil {
				t.Fatal(err)
			}
			put(t, c, &db.Item{Key: "a", Vectors: near, Fields: map[string]any{"width": 3}})
			put(t, c, &db.Item{Key: "b", Vectors: near, Fields: map[string]any{"width": 2}})
			o := dups{Verb: &run.Verb{Env: newTestEnv(), Ctx: t.Context()}, delete: 1}
			o.DB, o.Collection = at, &busy{c, 0, n, func(c api.Collection) { change(t, c) }}
			o.q = db.GroupQuery{Keep: "max width",
				Likeness: db.Likeness{Modality: "image", MinSimilarity: .99}}
			err = o.remove()
			said := fmt.Sprint(err)
			if !strings.Contains(said, "changed") && !strings.Contains(said, "not found") {
				t.Errorf("%s after %d lists: %v", name, n, err)
			}
			if _, err := c.Get(t.Context(), "b"); err != nil {
				t.Errorf("%s after %d lists: %v", name, n, err)
			}
		}
	}
}

func put(t *testing.T, c api.Collection, it *db.Item) {
	t.Helper()
	if _, err := c.Put(t.Context(), it); err != nil {
		t.Fatal(err)
	}
}
