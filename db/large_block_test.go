package db_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/testfs"
)

// A flipped bit in a large value is found at once by whatever reads it: Pebble would look
// for the bit, for hours in a block of this size.
func TestFlippedBitInLargeBlock(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "db")
	d := dbkit.MustOpen(t, dir, nil)
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	for i, key := range []string{"whole", "damaged"} {
		need(c.Put(ctx, &db.Item{Key: key, Payload: testfs.Noise(1<<20+i*8<<20, uint64(i))}))(t)
	}
	dbkit.MustClose(t, d)
	tables, err := filepath.Glob(filepath.Join(dir, store.StoreName, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	for _, name := range tables {
		b := need(os.ReadFile(name))(t)
		if len(b) > 8<<20 {
			b[len(b)-4<<20] ^= 16
		}
		must(t, os.WriteFile(name, b, 0o666))
	}
	findings := 0
	_, err = db.VerifyFolder(ctx, dir, nil, db.VerifyOptions{Deep: true}, func(f db.Finding) error {
		if !strings.Contains(f.Problem, "checksum") || strings.Contains(f.Problem, "carrier") {
			t.Errorf("%+v", f)
		}
		findings++
		return nil
	})
	if err != nil || findings == 0 {
		t.Errorf("%d findings, %v", findings, err)
	}
	d = dbkit.MustOpen(t, dir, nil)
	defer d.Close()
	c = dbkit.MustCollection(t, d, "main")
	if it, err := c.Get(ctx, "whole"); err != nil || len(it.Payload) != 1<<20 {
		t.Error(err)
	}
	if _, err := c.Get(ctx, "damaged"); !errors.Is(err, db.ErrCorrupt) || !strings.Contains(err.Error(), ".sst: block of ") || strings.Contains(err.Error(), "carrier") {
		t.Errorf("get: %v", err)
	}
	if err := d.Compact(ctx); !errors.Is(err, db.ErrCorrupt) {
		t.Errorf("compact: %v", err)
	}
}
