package db_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/fddhdb/fddhdb/db"
)

// A listener hears of what takes long, and of what happens.
func ExampleEventListener() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "fddhdb-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	d, err := db.Open(dir, &db.Options{EventListener: func(_ context.Context, e *db.Event) {
		switch {
		case e.Op == db.OpCheckpoint && e.Phase == db.PhaseDone, e.Name == db.EventCollectionCreated:
			fmt.Println(e.Name, e.Collection)
		case e.Name == db.EventFailed:
			fmt.Println("close it and open it again:", e.Err)
		}
	}})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := d.CreateCollection(ctx, "hashes", db.Schema{Bits: 64}); err != nil {
		log.Fatal(err)
	}
	if err := d.Checkpoint(ctx, dir+"-copy", db.CheckpointOptions{Collection: "hashes"}); err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir + "-copy")
	if err := d.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// fddhdb.collection.created hashes
	// fddhdb.checkpoint.done hashes
}
