package dbtest_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/dbtest"
)

// A test of a program that embeds a database.
func ExampleOpen() {
	_ = func(t *testing.T) { // such as TestShop
		d := dbtest.Open(t, "", nil) // in memory; verified when the test ends
		set := dbtest.Pairs{Unlabelled: .2}
		c, err := d.CreateCollection(t.Context(), "main", set.Schema())
		if err != nil {
			t.Fatal(err)
		}
		if err := dbtest.Load(t.Context(), d, c, set.Items(0, 500)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Train(t.Context(), db.TrainOptions{}); err != nil {
			t.Fatal(err)
		}
		for asked := range set.Items(500, 510) { // items that the collection does not know
			words := asked.Vectors["text"]
			dbtest.CheckSearches(t, c,
				db.Query{From: "text", To: "image", Vector: words},
				db.Query{From: "text", To: "image", Vector: words, Where: "number < ?", Args: []any{100},
					Rerank: db.RerankAsymmetric})
		}
	}
}

// An oracle finds without an index, and says where a search differs.
func ExampleOracle() {
	ctx := context.Background()
	d, err := db.Open("example", &db.Options{FS: vfs.NewMem()})
	check(err)
	defer d.Close()
	set := dbtest.Codes{Bits: 64, Centres: 10}
	c, err := d.CreateCollection(ctx, "main", set.Schema())
	check(err)
	check(dbtest.Load(ctx, d, c, set.Items(0, 1000)))

	o, err := dbtest.NewOracle(ctx, c)
	check(err)
	q := db.Query{Key: "item 7", Where: "number < 500", K: 5}
	fmt.Println("the database is right:", o.CheckSearch(ctx, q) == nil)

	_, err = c.Delete(ctx, "item 7") // the oracle does not notice
	check(err)
	q = db.Query{Code: make([]byte, 8), K: 1000}
	fmt.Println(o.CheckSearch(ctx, q))
	// Output:
	// the database is right: true
	// dbtest: 999 hits, want 1000 of 1000; "item 7" at distance 29 is missing (query by code 0000000000000000, k = 1000, order auto, plan auto)
}

func ExamplePairs() {
	set := dbtest.Pairs{Modalities: []db.Modality{{Name: "image", Dim: 2}, {Name: "text", Dim: 3}},
		Unlabelled: .5}
	for it := range set.Items(3, 6) {
		fmt.Printf("%s %q %.1f %v\n", it.Key, it.Labels, it.Vectors["image"], len(it.Vectors["text"]))
	}
	// Output:
	// item 3 ["label 3"] [-0.5 -0.6] 3
	// item 4 ["label 2"] [-0.2 -2.2] 3
	// item 5 ["label 3"] [0.3 -1.0] 3
}

// Items that keep coming, some at a time.
func ExampleBatches() {
	for some := range dbtest.Batches(dbtest.Codes{}.Items(0, 1000), 400) {
		fmt.Println(len(some), "items, from", some[0].Key)
	}
	// Output:
	// 400 items, from item 0
	// 400 items, from item 400
	// 200 items, from item 800
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
