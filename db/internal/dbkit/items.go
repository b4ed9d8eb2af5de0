package dbkit

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// PairsSchema is of items that have an image, a text and some fields.
var PairsSchema = db.Schema{
	Modalities: []db.Modality{{Name: "image", Dim: 8}, {Name: "text", Dim: 5}},
	Fields: []db.Field{
		{Name: "year", Type: db.Int, Indexed: true}, {Name: "title", Type: db.String, Words: true},
		{Name: "price", Type: db.Float}, {Name: "new", Type: db.Bool},
	},
}

// Pairs makes labelled items for PairsSchema.
func Pairs(n int, cfg synth.Config) []*db.Item {
	cfg.Items, cfg.Dims = n, []int{8, 5}
	data := synth.Pairs(cfg)
	items := make([]*db.Item, n)
	for i := range items {
		it := &db.Item{Key: fmt.Sprintf("k%d", i), Vectors: map[string][]float32{}}
		for t, x := range data.Item(i) {
			if x != nil {
				it.Vectors[PairsSchema.Modalities[t].Name] = x
			}
		}
		for _, l := range data.Labels[i] {
			it.Labels = append(it.Labels, fmt.Sprintf("class%d", l))
		}
		items[i] = it
	}
	return items
}

// ViewItems makes items for PairsSchema. They are labelled and unlabelled, and lack what may be missing.
func ViewItems(n int, seed uint64) []*db.Item {
	items := Pairs(n, synth.Config{Classes: 4, Noise: 2, Seed: seed})
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

// Bags makes items whose texts are sparse: they count words.
func Bags(t testing.TB, seed uint64, n int) []*db.Item {
	t.Helper()
	g, err := synth.NewNUSWide(seed, .3)
	if err != nil {
		t.Fatal(err)
	}
	items := make([]*db.Item, n)
	for i := range items {
		it := &db.Item{Key: fmt.Sprintf("k%d", i), Sparse: map[string]db.Sparse{},
			Vectors: map[string][]float32{}}
		var image [synth.NUSWideImage]float32
		g.Image(image[:], i)
		it.Vectors["image"] = image[:6:6]
		if i%7 != 3 {
			words, counts := g.AppendText(nil, nil, i)
			it.Sparse["text"] = db.Sparse{Index: words, Value: counts}
		}
		for _, l := range g.AppendLabels(nil, i) {
			it.Labels = append(it.Labels, fmt.Sprint("label", l))
		}
		if i%5 == 4 {
			it.Labels = nil
		}
		items[i] = it
	}
	items[1].Sparse["text"] = db.Sparse{} // no words
	return items
}

// CodeItems makes items with codes of which several have the same, of 16 bits or more.
func CodeItems(n, bits int, seed uint64, key func(i int) string) []*db.Item {
	codes := RandomCodes(n, bits, seed)
	items := make([]*db.Item, n)
	for i := range items {
		items[i] = &db.Item{Code: codes[i]}
		if i%5 == 0 {
			items[i].Code = codes[i/100] // some many times
		}
		if key != nil {
			items[i].Key = key(i)
		}
	}
	return items
}

// RandomCodes returns n codes of so many bits.
func RandomCodes(n, bits int, seed uint64) [][]byte {
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

// PutAll puts items into a collection of d, in one commit.
func PutAll(t testing.TB, d *db.DB, c *db.Collection, items []*db.Item) {
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

// AllItems returns all items of a collection, in the order of the database.
func AllItems(t testing.TB, c *db.Collection) []*db.Item {
	t.Helper()
	var items []*db.Item
	for it, err := range c.Items(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, it)
	}
	return items
}

// EqualItems compares items. (package cmp takes a hundred times as long, which matters for
// tens of thousands: it is only asked what is different.)
func EqualItems(t testing.TB, want, got []*db.Item) {
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
