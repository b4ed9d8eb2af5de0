package main

import (
	"context"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// The program runs, and what it says of recall is what it asked for.
func TestMainRuns(t *testing.T) {
	main()
	ctx := context.Background()
	d, err := db.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c, err := d.CreateCollection(ctx, "notes", db.Schema{Modalities: []db.Modality{{Name: "e", Dim: dims}}})
	if err != nil {
		t.Fatal(err)
	}
	e := newEncoder(2)
	b := d.NewBatch()
	for range 4_000 {
		if err := b.Put(c, &db.Item{Vectors: map[string][]float32{"e": e.encode()}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	var asked [][]float32
	for range 100 {
		asked = append(asked, e.encode())
	}
	exact, _ := answers(ctx, c, asked, db.Query{From: "e"})
	if _, err := c.IndexVectors(ctx, db.IndexOptions{}); err != nil {
		t.Fatal(err)
	}
	found, _ := answers(ctx, c, asked, db.Query{From: "e", Recall: .9})
	if got := recall(exact, found); got < .87 {
		t.Errorf("recall %v, of .9", got)
	}
}
