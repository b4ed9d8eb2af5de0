package db

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func mustOpen(t testing.TB, dir string, opts *Options) *DB {
	t.Helper()
	d, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustClose(t testing.TB, d *DB) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustCollection(t testing.TB, d *DB, name string) *Collection {
	t.Helper()
	c, err := d.Collection(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// openPairs opens a database with a learned collection "main" of two
// modalities, to be closed at the end of the test.
func openPairs(t testing.TB) (*DB, *Collection) {
	t.Helper()
	d := mustOpen(t, t.TempDir(), nil)
	t.Cleanup(func() { _ = d.Close() }) // the test may have closed it
	c, err := d.CreateCollection(ctx, "main", pairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	return d, c
}

func openCodes(t testing.TB) (*DB, *Collection) {
	t.Helper()
	d, _ := openPairs(t)
	c, err := d.CreateCollection(ctx, "codes", Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	return d, c
}

// openCoded opens a database in memory with a codes-only collection "main".
func openCoded(t testing.TB, bits int) (*DB, *Collection) {
	t.Helper()
	d := mustOpen(t, "db", &Options{FS: vfs.NewMem()})
	t.Cleanup(func() { _ = d.Close() })
	c, err := d.CreateCollection(ctx, "main", Schema{Bits: bits})
	if err != nil {
		t.Fatal(err)
	}
	return d, c
}

func mustSchema(t testing.TB, c *Collection) Schema {
	t.Helper()
	s, err := c.Schema()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustStats(t testing.TB, d *DB) *Stats {
	t.Helper()
	s, err := d.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func second[T any](_ T, err error) error { return err }
