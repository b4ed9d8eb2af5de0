package db_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/fddhdb/fddhdb/db"
)

// A copy that another process may read while this one goes on; without vectors it is
// searched as the original is, and refuses writes.
func ExampleDB_Checkpoint() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "fddhdb")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	d, err := db.Open(filepath.Join(dir, "photos"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "picture", Dim: 2}}})
	if err != nil {
		log.Fatal(err)
	}
	for i, label := range []string{"cat", "dog", "cat", "dog"} {
		_, err := c.Put(ctx, &db.Item{Key: fmt.Sprint(label, i), Labels: []string{label},
			Vectors: map[string][]float32{"picture": {float32(i % 2), 1 - float32(i%2)}}})
		if err != nil {
			log.Fatal(err)
		}
	}
	if _, err := c.Train(ctx, db.TrainOptions{}); err != nil {
		log.Fatal(err)
	}
	to := filepath.Join(dir, "served")
	if err := d.Checkpoint(ctx, to, db.CheckpointOptions{Collection: "main", IndexOnly: true}); err != nil {
		log.Fatal(err)
	}

	served, err := db.Open(to, nil) // elsewhere
	if err != nil {
		log.Fatal(err)
	}
	defer served.Close()
	if c, err = served.Collection("main"); err != nil {
		log.Fatal(err)
	}
	r, err := c.Search(ctx, db.Query{From: "picture", Vector: []float32{1, 0}, K: 2})
	if err != nil {
		log.Fatal(err)
	}
	for _, hit := range r.Hits {
		fmt.Println(hit.Key)
	}
	_, err = c.Put(ctx, &db.Item{Key: "cow"})
	fmt.Println(errors.Is(err, db.ErrReadOnly))
	// Output:
	// dog1
	// dog3
	// true
}
