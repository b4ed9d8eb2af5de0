package main

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/s3"
)

func main() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "fddhdb-backup-")
	check(err)
	defer os.RemoveAll(dir)

	d, err := db.Open(filepath.Join(dir, "hashes.fddhdb"), nil)
	check(err)
	defer d.Close()
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: 64})
	check(err)
	random := rand.NewChaCha8([32]byte{})
	put := func(name string, n int) {
		batch := d.NewBatch()
		for i := range n {
			code := make([]byte, 8)
			random.Read(code)
			check(batch.Put(c, &db.Item{Key: fmt.Sprint(name, " ", i), Code: code, Payload: code}))
		}
		check(batch.Commit(ctx))
	}
	put("old", 20_000)
	before := search(ctx, d)

	where := filepath.Join(dir, "backups")
	if len(os.Args) > 1 {
		where = os.Args[1]
	}
	store, err := openStore(ctx, where)
	check(err)
	first, err := d.Backup(ctx, store, db.BackupOptions{})
	check(err)
	put("new", 20_000)
	_, err = d.Backup(ctx, store, db.BackupOptions{})
	check(err)
	all, err := backup.List(ctx, store)
	check(err)
	for _, m := range all {
		fmt.Printf("%s: %7d bytes, %7d of them new\n", m.ID, m.BytesTotal, m.BytesNew)
	}

	// The whole database is restored into a new folder, and verified.
	old := filepath.Join(dir, "restored.fddhdb")
	_, err = db.Restore(ctx, store, old, nil, db.RestoreOptions{ID: first.ID})
	check(err)
	r, err := db.Open(old, nil)
	check(err)
	defer r.Close()
	added := 0
	for _, hit := range search(ctx, d) {
		if strings.HasPrefix(hit, "new ") {
			added++
		}
	}
	fmt.Println(added, "of the 10 items that the database finds came after the first backup")
	if restored := search(ctx, r); !slices.Equal(restored, before) {
		log.Fatalf("the restored database finds %q instead of %q", restored, before)
	}
	fmt.Println("the restored database finds the same 10 items as the database did then")
}

// openStore opens the folder or the bucket for backups.
func openStore(ctx context.Context, where string) (backup.Store, error) {
	if !strings.HasPrefix(where, "s3://") {
		return backup.Folder(where)
	}
	options, err := s3.ParseURL(where)
	if err != nil {
		return nil, err
	}
	return s3.Open(ctx, options)
}

// search returns the ten items nearest to a code, with their distances.
func search(ctx context.Context, d *db.DB) (hits []string) {
	c, err := d.Collection("main")
	check(err)
	found, err := c.Search(ctx, db.Query{Code: make([]byte, 8), K: 10})
	check(err)
	for _, hit := range found.Hits {
		hits = append(hits, fmt.Sprint(hit.Key, ": ", hit.Distance))
	}
	return hits
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
