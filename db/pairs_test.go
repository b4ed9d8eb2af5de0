package db

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/internal/synth"
)

var ctx = context.Background()

func mustOpen(t testing.TB, dir string, opts *Options) *DB {
	t.Helper()
	d, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustClose(t testing.TB, d *DB) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustCollection(t testing.TB, d *DB, name string) *Collection {
	t.Helper()
	c, err := d.Collection(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// openPairs opens a database with a learned collection "main" of two
// modalities, to be closed at the end of the test.
func openPairs(t testing.TB) (*DB, *Collection) {
	t.Helper()
	d := mustOpen(t, t.TempDir(), nil)
	t.Cleanup(func() { _ = d.Close() }) // the test may have closed it
	c, err := d.CreateCollection(ctx, "main", pairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	return d, c
}

var pairsSchema = Schema{
	Modalities: []Modality{{Name: "image", Dim: 8}, {Name: "text", Dim: 5}},
	Fields:     []Field{{"year", Int, true}, {"title", String, false}, {"price", Float, false}, {"new", Bool, false}},
}

// pairs makes labelled items for pairsSchema.
func pairs(n int, cfg synth.Config) []*Item {
	cfg.Items, cfg.Dims = n, []int{8, 5}
	data := synth.Pairs(cfg)
	items := make([]*Item, n)
	for i := range items {
		it := &Item{Key: fmt.Sprintf("k%d", i), Vectors: map[string][]float32{}}
		for t, x := range data.Item(i) {
			if x != nil {
				it.Vectors[pairsSchema.Modalities[t].Name] = x
			}
		}
		for _, l := range data.Labels[i] {
			it.Labels = append(it.Labels, fmt.Sprintf("class%d", l))
		}
		items[i] = it
	}
	return items
}

func putAll(t testing.TB, c *Collection, items []*Item) {
	t.Helper()
	b := Of(c).NewBatch()
	for _, it := range items {
		if err := b.Put(c, it); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Commit(ctx); err != nil {
		t.Fatal(err)
	}
}

// mustTrain trains, and makes the new space the active one.
func mustTrain(t testing.TB, c *Collection, opt TrainOptions) *Training {
	t.Helper()
	opt.Activate = true
	tr, err := c.Train(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func allItems(t testing.TB, c *Collection) []*Item {
	t.Helper()
	var items []*Item
	for it, err := range c.Items(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, it)
	}
	return items
}

// equalItems compares items. (package cmp takes a hundred times as long, which matters for
// tens of thousands: it is only asked what is different.)
func equalItems(t testing.TB, want, got []*Item) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%d items, not %d", len(got), len(want))
	}
	for i, it := range want {
		if !reflect.DeepEqual(it, got[i]) {
			t.Fatalf("item %d (-want +got):\n%s", i, cmp.Diff(it, got[i]))
		}
	}
}
