package db_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// What is no database of ours is named as far as it can be told, and left as it is.
func TestForeignFoldersAreNamed(t *testing.T) {
	own := t.TempDir()
	d := dbkit.MustOpen(t, own, nil)
	dbkit.MustClose(t, d)
	other := t.TempDir()
	kv := need(pebble.Open(other, &pebble.Options{Logger: store.NewLog(db.State(d).Signals)}))(t)
	must(t, kv.Close())
	file := func(content string) string {
		return filepath.Join(folderIn(t, map[string]string{"file": content}), "file")
	}
	for _, c := range []struct{ dir, says string }{
		{file("SQLite format 3\x00 and so on, for a page"), "an SQLite database"},
		{file("0123456789abcdef\xed\xda\x0c\xed and so on"), "a bbolt database"},
		{file("x"), "is a file; a database is a folder"},
		{other, "a Pebble store that is no database of fddhdb"},
		{filepath.Join(own, store.StoreName), "it is the store of the database in " + own},
		{folderIn(t, map[string]string{"CURRENT": "MANIFEST-000004\n", "IDENTITY": "x", "000001.sst": ""}), "a RocksDB database"},
		{folderIn(t, map[string]string{"CURRENT": "MANIFEST-000004\n", "MANIFEST-000004": ""}), "a LevelDB database"},
		{folderIn(t, map[string]string{"fddhdb-backups.json": "{}"}), "a repository of backups"},
		{folderIn(t, map[string]string{"thesis.tex": ""}), "holds something else"},
	} {
		names, _ := os.ReadDir(c.dir)
		_, open := db.Open(c.dir, nil)
		_, read := db.Open(c.dir, &db.Options{ReadOnly: true})
		_, verify := db.VerifyFolder(ctx, c.dir, nil, db.VerifyOptions{}, func(db.Finding) error { return nil })
		for what, err := range map[string]error{"open": open, "read": read, "verify": verify} {
			if !errors.Is(err, db.ErrNotDatabase) || !strings.Contains(err.Error(), c.says) || strings.Count(err.Error(), "fddhdb: ") != 1 {
				t.Errorf("%s %s: %v", what, c.says, err)
			}
		}
		if after, _ := os.ReadDir(c.dir); len(after) != len(names) {
			t.Errorf("%s: %d files, %d before", c.says, len(after), len(names))
		}
	}
}
