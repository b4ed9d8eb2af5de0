package db_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/event"
)

// A listener hears of what takes long, and of what happens.
func ExampleOptions_eventListener() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "fddhdb-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	d, err := db.Open(dir, &db.Options{EventListener: func(_ context.Context, e *event.Event) {
		switch {
		case e.Op == event.OpCheckpoint && e.Phase == event.PhaseDone, e.Name == event.CollectionCreated:
			fmt.Println(e.Name, e.Collection)
		case e.Name == event.Failed:
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
