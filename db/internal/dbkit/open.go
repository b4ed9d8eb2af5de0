package dbkit

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
)

var ctx = context.Background()

// MustOpen opens a database, which the test closes.
func MustOpen(t testing.TB, dir string, opts *db.Options) *db.DB {
	t.Helper()
	d, err := db.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// MustClose closes a database.
func MustClose(t testing.TB, d *db.DB) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// MustCollection returns a collection that is there.
func MustCollection(t testing.TB, d *db.DB, name string) *db.Collection {
	t.Helper()
	c, err := d.Collection(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// OpenPairs opens a database with a learned collection "main" of two
// modalities, to be closed at the end of the test.
func OpenPairs(t testing.TB) (*db.DB, *db.Collection) {
	t.Helper()
	d := MustOpen(t, t.TempDir(), nil)
	t.Cleanup(func() { _ = d.Close() }) // the test may have closed it
	c, err := d.CreateCollection(ctx, "main", PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	return d, c
}

// OpenCodes opens a database with a codes-only collection "codes", in a folder of its own.
func OpenCodes(t testing.TB) (*db.DB, *db.Collection) {
	t.Helper()
	d, _ := OpenPairs(t)
	c, err := d.CreateCollection(ctx, "codes", db.Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	return d, c
}

// OpenCoded opens a database in memory with a codes-only collection "main".
func OpenCoded(t testing.TB, bits int) (*db.DB, *db.Collection) {
	t.Helper()
	d := MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	t.Cleanup(func() { _ = d.Close() })
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: bits})
	if err != nil {
		t.Fatal(err)
	}
	return d, c
}

// MustSchema returns the schema of a collection.
func MustSchema(t testing.TB, c *db.Collection) db.Schema {
	t.Helper()
	s, err := c.Schema()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// MustStats returns the figures of a database.
func MustStats(t testing.TB, d *db.DB) *db.Stats {
	t.Helper()
	s, err := d.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Second returns the error of a call that returns something else, too.
func Second[T any](_ T, err error) error { return err }
