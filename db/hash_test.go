package db_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// A collection keeps the name of the hash of its codes, through alterations, reopening and copies.
func TestHashOfACollection(t *testing.T) {
	fs := vfs.NewMem()
	schema := db.Schema{Bits: 64, Hash: "phash"}
	d, c := openNew(t, "db", &db.Options{FS: fs}, schema)
	same := func(what string, d *db.DB) {
		t.Helper()
		got, err := dbkit.MustCollection(t, d, "main").Schema()
		failIf(t, err != nil || got.Hash != "phash", "%s: hash %q, %v", what, got.Hash, err)
		dbkit.CheckSound(t, d, what)
	}
	same("new", d)
	must(t, c.Alter(ctx, db.Alteration{AddFields: []db.Field{{Name: "width", Type: db.Int}}}))
	same("altered", d)
	must(t, d.Checkpoint(ctx, "copy", db.CheckpointOptions{Collection: "main"}))
	copied := dbkit.MustOpen(t, "copy", &db.Options{FS: fs})
	same("copied", copied)
	dbkit.MustClose(t, copied)
	d, _ = reopen(t, d, "db", &db.Options{FS: fs})
	defer dbkit.MustClose(t, d)
	same("opened again", d)

	fine(t, errOf(d.EnsureCollection(ctx, "main", schema)))
	fine(t, errOf(d.EnsureCollection(ctx, "main", db.Schema{Bits: 64})))
	errorIs(t, errOf(d.EnsureCollection(ctx, "main", db.Schema{Bits: 64, Hash: "dhash"})), db.ErrExists)
	for _, bad := range []db.Schema{{Bits: 64, Hash: "a b"}, {Bits: 64, Hash: "\xff"},
		{Modalities: []db.Modality{{Name: "e", Dim: 2}}, Hash: "phash"}} {
		errorIs(t, errOf(d.CreateCollection(ctx, "other", bad)), db.ErrInvalid)
	}
}
