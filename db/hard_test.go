package db_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// TestMoreLabelsThanBits: refused with both numbers; with label embedding every item
// has the code of its labels, which is there after reopening, and vectors find their
// labels.
func TestMoreLabelsThanBits(t *testing.T) {
	dbkit.LongTest(t)
	dir := t.TempDir()
	d := dbkit.MustOpen(t, dir, nil)
	c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.Pairs(300, synth.Config{Classes: 40, Noise: .1, Seed: 4})
	putAll(t, c, items)
	opt := db.TrainOptions{Options: fit.Options{Bits: 16}}
	var bits *fit.BitsError
	if _, err := c.Train(ctx, opt); !errors.Is(err, db.ErrInvalid) || !errors.As(err, &bits) || bits.Labels != 40 || bits.Bits != 16 {
		t.Fatalf("%v", err)
	}
	opt.LabelEmbedding = true
	tr := dbkit.MustTrain(t, c, opt)
	if tr.Embedding == nil || tr.Embedding.Dims != 16 || tr.Labels != 40 || tr.Items != 300 {
		t.Errorf("%+v", tr)
	}
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, dir, nil)
	defer d.Close()
	c = dbkit.MustCollection(t, d, "main")
	right := 0
	for _, it := range items[:100] {
		hits, err := c.Search(ctx, db.Query{From: "image", Vector: it.Vectors["image"], To: "text", K: 1})
		if err != nil {
			t.Fatal(err)
		}
		found, err := c.Get(ctx, hits.Hits[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		if found.Labels[0] == it.Labels[0] {
			right++
		}
	}
	if right < 80 { // chance is 2 or 3
		t.Errorf("%d of 100 images find a text of their label", right)
	}
}

// TestHardCollections: what is hard about items neither fails nor gives anything
// that is not a number, and every item has a code.
func TestHardCollections(t *testing.T) {
	dbkit.LongTest(t)
	each := func(items []*db.Item, modality string, f func(i int, x []float32)) {
		for i, it := range items {
			if x := it.Vectors[modality]; x != nil {
				f(i, x)
			}
		}
	}
	for name, change := range map[string]func(items []*db.Item){
		"one class of nearly all": func(items []*db.Item) { relabel(items[1:], "cat") },
		"a label on every item": func(items []*db.Item) {
			for _, it := range items {
				it.Labels = append(it.Labels, "all")
			}
		},
		"one item a class": func(items []*db.Item) {
			for i, it := range items {
				it.Labels = []string{fmt.Sprint("l", i)}
			}
		},
		"no item complete": func(items []*db.Item) {
			for i, it := range items {
				delete(it.Vectors, []string{"image", "text"}[i%2])
			}
		},
		"no labelled item with text": func(items []*db.Item) {
			for i, it := range items {
				if i < 40 {
					delete(it.Vectors, "text")
				} else {
					it.Labels = nil
				}
			}
		},
		"zero vectors": func(items []*db.Item) { each(items, "text", func(_ int, x []float32) { clear(x) }) },
		"huge": func(items []*db.Item) {
			each(items, "image", func(_ int, x []float32) {
				for j := range x {
					x[j] *= 1e30
				}
			})
		},
		"tiny": func(items []*db.Item) {
			each(items, "image", func(_ int, x []float32) {
				for j := range x {
					x[j] *= 1e-30
				}
			})
		},
		"all equal": func(items []*db.Item) {
			each(items, "image", func(_ int, x []float32) { copy(x, items[0].Vectors["image"]) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, c := dbkit.OpenPairs(t)
			items := dbkit.Pairs(60, synth.Config{Classes: 4, Seed: 1})
			change(items)
			putAll(t, c, items)
			tr := dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 64}})
			if tr.Items < 40 || tr.DistinctCodes < 2 {
				t.Errorf("%+v", tr)
			}
			if _, err := json.Marshal(tr); err != nil {
				t.Error(err)
			}
			for _, it := range items[:10] {
				if it.Vectors["image"] == nil {
					continue
				}
				r, err := c.Search(ctx, db.Query{From: "image", Vector: it.Vectors["image"], To: "image", K: 3})
				if err != nil || len(r.Hits) == 0 {
					t.Fatalf("%v, %v", r, err)
				}
			}
		})
	}
}
