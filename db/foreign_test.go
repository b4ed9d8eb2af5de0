package db_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// What is no database of ours is named as far as it can be told, and left as it is.
func TestForeignFoldersAreNamed(t *testing.T) {
	own := t.TempDir()
	d := dbkit.MustOpen(t, own, nil)
	dbkit.MustClose(t, d)
	other := t.TempDir()
	kv, err := pebble.Open(other, &pebble.Options{Logger: store.NewLog(db.State(d).Signals)})
	if err != nil {
		t.Fatal(err)
	}
	if err := kv.Close(); err != nil {
		t.Fatal(err)
	}
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
		_, _, upgrade := db.Upgrade(ctx, c.dir, nil, db.UpgradeOptions{})
		_, verify := db.VerifyFolder(ctx, c.dir, nil, db.VerifyOptions{}, func(db.Finding) error { return nil })
		for what, err := range map[string]error{"open": open, "read": read, "upgrade": upgrade, "verify": verify} {
			if !errors.Is(err, db.ErrNotDatabase) || !strings.Contains(err.Error(), c.says) || strings.Count(err.Error(), "fddhdb: ") != 1 {
				t.Errorf("%s %s: %v", what, c.says, err)
			}
		}
		if after, _ := os.ReadDir(c.dir); len(after) != len(names) {
			t.Errorf("%s: %d files, %d before", c.says, len(after), len(names))
		}
	}
}

// What a newer version has written is named as that, not as damage.
func TestNewerFormatsAreNamed(t *testing.T) {
	counters := func(b []byte) []byte { b[0] = 6; return b }
	descriptor := func(b []byte) []byte { return []byte(strings.Replace(string(b), `"version":0`, `"version":9`, 1)) }
	frame := func(b []byte) []byte { b[4] = 5; return b }
	for name, c := range map[string]struct {
		key              []byte
		change           func([]byte) []byte
		found, supported int
		what             string
	}{
		"format":     {codec.DatabaseKey(codec.RecordFormat), func(b []byte) []byte { b[3] = 7; return b }, 7, db.NewestFormat, ""},
		"counters":   {codec.CollectionKey(codec.KindCounters, 1), counters, 6, 4, "counters of collection"},
		"collection": {codec.CollectionKey(codec.KindCollection, 1), descriptor, 9, record.VersionTimes, "descriptor of collection"},
		"space":      {codec.NumberKey(codec.KindSpace, 1, 1), descriptor, 9, 0, "descriptor of space 1"},
		"revision":   {codec.RevisionKey(1, 1, 1, 0), descriptor, 9, 0, "descriptor of revision 1"},
		"model":      {codec.ChunkKey(codec.KindModel, 1, 1, 0), frame, 5, 4, "model of space 1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := dbkit.MustOpen(t, dir, nil)
			c1, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
			if err != nil {
				t.Fatal(err)
			}
			putAll(t, c1, dbkit.Pairs(40, synth.Config{}))
			dbkit.MustTrain(t, c1, db.TrainOptions{})
			b, err := record.Get(db.State(d).Engine.DB, c.key)
			if err != nil || b == nil {
				t.Fatal(b, err)
			}
			keyValue{c.key, c.change(b)}.put(t, d)
			dbkit.MustClose(t, d)
			_, err = db.Open(dir, nil)
			var fe *db.FormatError
			if !errors.Is(err, db.ErrFormat) || errors.Is(err, db.ErrCorrupt) || !errors.As(err, &fe) || fe.Found != c.found || fe.Supported != c.supported ||
				!strings.Contains(err.Error(), c.what) || !strings.Contains(err.Error(), "use a newer one") {
				t.Errorf("%v", err)
			}
		})
	}
}

// A store of a newer format of Pebble is not opened, which would end with an error that
// means nothing to who reads it, or not at all.
func TestNewerStoreIsNamed(t *testing.T) {
	dir := t.TempDir()
	dbkit.MustClose(t, dbkit.MustOpen(t, dir, nil))
	markers, err := filepath.Glob(filepath.Join(dir, store.StoreName, "marker.format-version.*"))
	if err != nil || len(markers) != 1 {
		t.Fatal(markers, err)
	}
	newer := filepath.Join(dir, store.StoreName, "marker.format-version.000099.099")
	if err := os.Rename(markers[0], newer); err != nil {
		t.Fatal(err)
	}
	for _, readOnly := range []bool{false, true} {
		var fe *db.FormatError
		if _, err := db.Open(dir, &db.Options{ReadOnly: readOnly}); !errors.As(err, &fe) || fe.Found != 99 || fe.Supported != int(store.PebbleFormat) || fe.What != "store" {
			t.Errorf("%v", err)
		}
	}
	if _, err := os.Stat(newer); err != nil {
		t.Error(err)
	}
}
