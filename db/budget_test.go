package db_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/mih"
)

// The memory for tables goes to the space that everybody searches; another one gets what
// is left, and all of it when it takes that one's place.
func TestActiveSpacesHaveTheirTablesFirst(t *testing.T) {
	items := dbkit.Pairs(9000, synth.Config{Seed: 11, Classes: 40, LabelsPerItem: 2, Noise: 1.5})
	for i, it := range items {
		if i > 200 {
			it.Labels = nil
		}
	}
	opt := db.TrainOptions{Options: fit.Options{Bits: 64, Anchors: 20, Seed: 1}, Rows: 200}
	fs := vfs.NewMem()
	world := func(budget int64) (*db.DB, *db.Collection) {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: fs, IndexCacheBytes: budget})
		c, err := d.Collection("main")
		if err != nil {
			if c, err = d.CreateCollection(ctx, "main", dbkit.PairsSchema); err != nil {
				t.Fatal(err)
			}
			putAll(t, c, items)
			dbkit.MustTrain(t, c, opt)
		}
		if err := d.WaitForIndex(ctx); err != nil {
			t.Fatal(err)
		}
		return d, c
	}
	d, c := world(0)
	codes := inSpace(t, c, 1).Codes.Codes
	dbkit.MustClose(t, d)
	if codes < 3000 {
		t.Fatalf("%d codes", codes)
	}
	budget := int64(mih.TableBytes(64, codes)) * 3 / 2
	d, c = world(budget)
	indexed := func(space uint32) string {
		if err := d.WaitForIndex(ctx); err != nil {
			t.Fatal(err)
		}
		tables, bare, tail := inSpace(t, c, space).Codes.Table.Covered()
		if tail >= 1024 || tables > 0 && bare > 0 {
			t.Errorf("space %d: %d codes in tables, %d in none, %d in the tail", space, tables, bare, tail)
		}
		return fmt.Sprint(tables > 0)
	}
	check := func(what string, one, two string) {
		t.Helper()
		if a, b := indexed(1), indexed(2); a != one || b != two {
			t.Errorf("%s: tables of space 1: %s, of space 2: %s", what, a, b)
		}
		if s, err := c.Stats(); err != nil || s.IndexBytes > budget {
			t.Errorf("%s: %d bytes of tables, %v", what, s.IndexBytes, err)
		}
	}
	if _, err := c.Reindex(ctx, db.ReindexOptions{}); err != nil {
		t.Fatal(err)
	}
	check("standing by", "true", "false")
	if err := c.Activate(ctx, 2); err != nil {
		t.Fatal(err)
	}
	check("active", "false", "true")
	dbkit.MustClose(t, d)
	d, c = world(budget)
	if err := db.WaitForCodes(d, context.Background()); err != nil {
		t.Fatal(err)
	}
	check("opened again", "false", "true")
	dbkit.MustClose(t, d)
	d, c = world(-1)
	check("without any", "false", "false")
	dbkit.MustClose(t, d)
}
