package db_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// verifyFolder verifies a folder.
func verifyFolder(t testing.TB, dir string) []db.Finding {
	t.Helper()
	var all []db.Finding
	if _, err := db.VerifyFolder(ctx, dir, nil, db.VerifyOptions{}, func(f db.Finding) error {
		all = append(all, f)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// folderOf makes a database of several hundred blocks of tables and returns its folder
// and its tables.
func folderOf(t testing.TB) (dir string, tables []string) {
	t.Helper()
	dir = t.TempDir()
	d := dbkit.MustOpen(t, dir, nil)
	c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.Pairs(3000, synth.Config{})
	for _, it := range items {
		it.Payload = bytes.Repeat([]byte{1, 2, 3, 4, 5, 7, 11}, 30)
	}
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	if err := d.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	dbkit.MustClose(t, d)
	tables, err = filepath.Glob(filepath.Join(dir, "store", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	return dir, tables
}

func filesOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "store", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(b)
	}
	return all
}

// A folder is verified without being changed, while nobody has it open.
func TestVerifyFolder(t *testing.T) {
	dbkit.LongTest(t)
	dir, _ := folderOf(t)
	before := filesOf(t, dir)
	if found := verifyFolder(t, dir); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	after := filesOf(t, dir)
	for name, b := range before {
		if after[name] != b {
			t.Errorf("%s has changed", name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files, %d before", len(after), len(before))
	}
	report := func(db.Finding) error { return nil }
	d := dbkit.MustOpen(t, dir, nil)
	if _, err := db.VerifyFolder(ctx, dir, nil, db.VerifyOptions{}, report); !errors.Is(err, db.ErrLocked) {
		t.Errorf("while it is open: %v", err)
	}
	dbkit.MustClose(t, d)
	for _, other := range []string{t.TempDir(), filepath.Join(dir, "nosuch")} {
		if _, err := db.VerifyFolder(ctx, other, nil, db.VerifyOptions{}, report); !errors.Is(err, db.ErrNotDatabase) {
			t.Errorf("%s: %v", other, err)
		}
		if names, err := os.ReadDir(other); err == nil && len(names) > 0 {
			t.Errorf("%s has %v in it", other, names)
		}
	}
}

// A block of a table that cannot be read is found, and what else is wrong nevertheless,
// and little is said of what follows from it.
func TestVerifyGoesOnBehindDamage(t *testing.T) {
	dbkit.LongTest(t)
	dir, tables := folderOf(t)
	d := dbkit.MustOpen(t, dir, nil)
	last := codec.NumberKey(codec.KindItem, 1, 2990)
	keyValue{last, []byte("garbage")}.put(t, d) // elsewhere, and behind it
	dbkit.MustClose(t, d)
	var largest string
	var b []byte
	for _, name := range tables {
		now, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(now) > len(b) {
			largest, b = name, now
		}
	}
	found := 0
	for place := range 8 {
		if !effort.Sampled(place, 7) {
			continue
		}
		at := len(b)/20 + place*len(b)/8
		damaged := bytes.Clone(b)
		for i := at; i < min(at+50, len(b)); i++ {
			damaged[i] ^= 0x5a
		}
		if err := os.WriteFile(largest, damaged, 0o666); err != nil {
			t.Fatal(err)
		}
		unread, elsewhere := 0, false
		all := verifyFolder(t, dir)
		for _, f := range all {
			if strings.Contains(f.Problem, "cannot be") {
				unread++
			}
			elsewhere = elsewhere || f.Record == "item in row 2990"
		}
		if unread > 0 {
			found++
		}
		if len(all) == 0 || unread > 3 || len(all) > 60 || !elsewhere {
			t.Errorf("damage at %d of %d bytes: %d findings of what cannot be read, %d in all: %.5v", at, len(b), unread, len(all), all)
		}
	}
	t.Logf("%d places damaged", found)
}

// A store that does not open is one finding.
func TestVerifyStoreThatDoesNotOpen(t *testing.T) {
	dbkit.LongTest(t)
	dir, tables := folderOf(t)
	if err := os.Remove(tables[0]); err != nil {
		t.Fatal(err)
	}
	found := verifyFolder(t, dir)
	if len(found) != 1 || !strings.Contains(found[0].Problem, "cannot be opened") {
		t.Errorf("found %v", found)
	}
}
