package db_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/event"
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

// A backup of a database that is open, to a folder, and what becomes of it.
func ExampleDB_Backup() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "fddhdb")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	d, err := db.Open(filepath.Join(dir, "hashes"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: 16})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := c.Put(ctx, &db.Item{Key: "a", Code: []byte{1, 2}}); err != nil {
		log.Fatal(err)
	}

	repo, err := backup.Folder(filepath.Join(dir, "backups"))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := d.Backup(ctx, repo, db.BackupOptions{}); err != nil {
		log.Fatal(err)
	}
	if _, err := c.Delete(ctx, "a"); err != nil {
		log.Fatal(err)
	}

	m, err := db.Restore(ctx, repo, filepath.Join(dir, "restored"), nil, db.RestoreOptions{})
	if err != nil {
		log.Fatal(err)
	}
	r, err := db.Open(filepath.Join(dir, "restored"), &db.Options{MustExist: true})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	if c, err = r.Collection("main"); err != nil {
		log.Fatal(err)
	}
	n, err := c.Count(context.Background(), "")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n, "item after", m.Sequence, "commits")
	// Output: 1 item after 2 commits
}

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
