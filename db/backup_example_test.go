package db_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
)

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
