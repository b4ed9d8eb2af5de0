package db

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/synth"
)

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

// viewItems are labelled and unlabelled, and lack what may be missing.
func viewItems(n int, seed uint64) []*Item {
	items := pairs(n, synth.Config{Classes: 4, Noise: 2, Seed: seed})
	for i, it := range items {
		if i%2 == 1 {
			it.Labels = nil
		}
		switch i % 7 {
		case 3:
			delete(it.Vectors, "text")
		case 5:
			delete(it.Vectors, "image")
		case 6:
			if i%3 == 0 {
				it.Vectors = nil
			}
		}
	}
	return items
}

// bags makes items with texts of words, sparse.
func bags(t testing.TB, seed uint64, n int) []*Item {
	t.Helper()
	g, err := synth.NewNUSWide(seed, .3)
	if err != nil {
		t.Fatal(err)
	}
	items := make([]*Item, n)
	for i := range items {
		it := &Item{Key: fmt.Sprintf("k%d", i), Sparse: map[string]Sparse{}, Vectors: map[string][]float32{}}
		var image [synth.NUSWideImage]float32
		g.Image(image[:], i)
		it.Vectors["image"] = image[:6:6]
		if i%7 != 3 {
			words, counts := g.AppendText(nil, nil, i)
			it.Sparse["text"] = Sparse{words, counts}
		}
		for _, l := range g.AppendLabels(nil, i) {
			it.Labels = append(it.Labels, fmt.Sprint("label", l))
		}
		if i%5 == 4 {
			it.Labels = nil
		}
		items[i] = it
	}
	items[1].Sparse["text"] = Sparse{} // no words
	return items
}

// codeItems makes items with codes of which several have the same, of 16 bits or more.
func codeItems(n, bits int, seed uint64, key func(i int) string) []*Item {
	codes := randomCodes(n, bits, seed)
	items := make([]*Item, n)
	for i := range items {
		items[i] = &Item{Code: codes[i]}
		if i%5 == 0 {
			items[i].Code = codes[i/100] // some many times
		}
		if key != nil {
			items[i].Key = key(i)
		}
	}
	return items
}

// randomCodes returns n codes of so many bits.
func randomCodes(n, bits int, seed uint64) [][]byte {
	r := rand.New(rand.NewPCG(seed, 0))
	codes := make([][]byte, n)
	for i := range codes {
		codes[i] = make([]byte, codec.Bytes(bits))
		for j := range codes[i] {
			codes[i][j] = byte(r.Uint32())
		}
	}
	return codes
}

// putAllIn puts items into a collection of d, in one commit.
func putAllIn(t testing.TB, d *DB, c *Collection, items []*Item) {
	t.Helper()
	b := d.NewBatch()
	for _, it := range items {
		if err := b.Put(c, it); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Commit(ctx); err != nil {
		t.Fatal(err)
	}
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
