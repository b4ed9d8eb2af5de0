package s3_test

import (
	"context"
	"fmt"
	"log"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/s3"
)

// A database is backed up to a bucket, and restored from there.
func Example() {
	ctx := context.Background()
	d, err := db.Open("photos.fddhdb", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	o, err := s3.ParseURL("s3://my-bucket/photos?region=eu-central-1")
	if err != nil {
		log.Fatal(err)
	}
	store, err := s3.Open(ctx, o) // with the credentials of the environment
	if err != nil {
		log.Fatal(err)
	}
	m, err := d.Backup(ctx, store, db.BackupOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d bytes, %d of them new\n", m.BytesTotal, m.BytesNew)
	if _, err := db.Restore(ctx, store, "again.fddhdb", nil, db.RestoreOptions{ID: m.ID}); err != nil {
		log.Fatal(err)
	}
}
