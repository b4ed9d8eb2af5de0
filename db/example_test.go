package db_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/fddhdb/fddhdb/db"
)

// The whole flow: items with a picture and words, labels to learn from, and a search from words to pictures.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "fddhdb")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	d, err := db.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	c, err := d.CreateCollection(ctx, "main", db.Schema{
		Modalities: []db.Modality{{Name: "picture", Dim: 2}, {Name: "words", Dim: 2}},
	})
	if err != nil {
		log.Fatal(err)
	}
	batch := d.NewBatch()
	for i := range 20 {
		x := float32(i) / 100
		batch.Put(c, &db.Item{Key: fmt.Sprintf("cat%d", i), Labels: []string{"cat"},
			Vectors: map[string][]float32{"picture": {1, x}, "words": {0, 1 - x}}})
		batch.Put(c, &db.Item{Key: fmt.Sprintf("dog%d", i), Labels: []string{"dog"},
			Vectors: map[string][]float32{"picture": {x, 1}, "words": {1, x}}})
	}
	if err := batch.Commit(ctx); err != nil { // returns the first error of the Puts, too
		log.Fatal(err)
	}
	t, err := c.Train(ctx, db.TrainOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(t.DistinctCodes, "codes of", t.Bits, "bits")

	r, err := c.Search(ctx, db.Query{From: "words", To: "picture", Vector: []float32{0, 1}, K: 3})
	if err != nil {
		log.Fatal(err)
	}
	for _, hit := range r.Hits {
		fmt.Println(hit.Key[:3], "at distance", hit.Distance)
	}
	// Output:
	// 2 codes of 64 bits
	// cat at distance 0
	// cat at distance 0
	// cat at distance 0
}

// A codes-only collection searches codes that its items bring: perceptual hashes, say.
func Example_codesOnly() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "fddhdb")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	d, err := db.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	c, err := d.CreateCollection(ctx, "hashes", db.Schema{Bits: 16})
	if err != nil {
		log.Fatal(err)
	}
	for _, item := range []db.Item{
		{Key: "a", Code: []byte{0x00, 0x00}}, {Key: "b", Code: []byte{0x03, 0x00}},
		{Key: "c", Code: []byte{0xff, 0xff}},
	} {
		if _, err := c.Put(ctx, &item); err != nil {
			log.Fatal(err)
		}
	}
	runs, err := c.SearchRadius(ctx, db.Query{Code: []byte{0x01, 0x00}}, 4)
	if err != nil {
		log.Fatal(err)
	}
	defer runs.Close()
	fmt.Println(runs.Total(), "within 4 bits:")
	for hit, err := range runs.Hits(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(hit.Key, "at distance", hit.Distance)
	}
	// Output:
	// 2 within 4 bits:
	// a at distance 1
	// b at distance 1
}

// An expression over labels and indexed fields filters what is found.
func Example_where() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "fddhdb")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	d, err := db.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	c, err := d.CreateCollection(ctx, "hashes", db.Schema{
		Bits: 8, Fields: []db.Field{{Name: "year", Type: db.Int, Indexed: true}}})
	if err != nil {
		log.Fatal(err)
	}
	for i := range 10 {
		item := &db.Item{Key: fmt.Sprint("cat", i), Code: []byte{byte(i)}, Labels: []string{"cat"}}
		if i > 0 {
			item.Fields = map[string]any{"year": 2015 + i}
		}
		if _, err := c.Put(ctx, item); err != nil {
			log.Fatal(err)
		}
	}
	r, err := c.Search(ctx, db.Query{Code: []byte{0}, K: 2, Where: "label = ? AND year >= ?",
		Args: []any{"cat", 2020}})
	if err != nil {
		log.Fatal(err)
	}
	for _, hit := range r.Hits {
		fmt.Println(hit.Key, "at distance", hit.Distance)
	}
	n, err := c.DeleteWhere(ctx, "year < ?", 2020)
	if err != nil {
		log.Fatal(err)
	}
	for item, err := range c.Items(ctx, "NOT year >= 2020") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(n, "deleted;", item.Key, "has no year")
	}
	// Output:
	// cat8 at distance 1
	// cat5 at distance 2
	// 4 deleted; cat0 has no year
}
