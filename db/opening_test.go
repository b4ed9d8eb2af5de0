package db_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/effort"
)

// What a crash has left in the log has to be written into tables when the database is
// opened. Where that is impossible, Open says so, and the folder is free for another try.
func TestOpenEndsWhereTheLogCannotBecomeTables(t *testing.T) {
	effort.Slow(t)
	mem := vfs.NewCrashableMem()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	putAll(t, c, dbkit.ViewItems(40, 1))
	dbkit.MustTrain(t, c, dbkit.TinyTraining(1))
	must(t, d.Compact(ctx))
	putAll(t, c, dbkit.ViewItems(60, 2))
	b := d.NewBatch()
	for i := range bulkItems { // tables that the log names
		must(t, b.Put(c, &db.Item{Key: string(rune(0x4e00 + i)), Labels: []string{"class1"}}))
	}
	must(t, b.Commit(ctx))
	if _, err := c.Put(ctx, &db.Item{Key: "last"}); err != nil { // the load may have been flushed by now
		t.Fatal(err)
	}
	left := mem.CrashClone(vfs.CrashCloneCfg{})
	dbkit.MustClose(t, d)
	for what, broken := range map[string]func(errorfs.Op) bool{
		"no table can be created": func(op errorfs.Op) bool { return op.Kind == errorfs.OpCreate && sortOf(op.Path) == ".sst" },
		"no table can be synced": func(op errorfs.Op) bool {
			return op.Kind >= errorfs.OpFileSync && op.Kind <= errorfs.OpFileSyncTo && sortOf(op.Path) == ".sst"
		},
		"no table can be read": func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileReadAt && sortOf(op.Path) == ".sst" },
	} {
		t.Run(what, func(t *testing.T) {
			var on atomic.Bool
			on.Store(true)
			mem := vfs.NewMem()
			need(vfs.Clone(left, mem, "db", "db"))(t)
			files := newOpenFiles(mem)
			fsys := errorfs.Wrap(files, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if on.Load() && broken(op) {
					return dbkit.ErrInjected
				}
				return nil
			}))
			watched(what, func() {
				d, err := db.Open("db", &db.Options{FS: fsys})
				if err == nil {
					d.Close()
				}
				if !errors.Is(err, dbkit.ErrInjected) || errors.Is(err, db.ErrCorrupt) {
					t.Errorf("%v", err)
				}
				t.Log(err)
			})
			if open := files.left(); len(open) > 0 {
				t.Errorf("left open: %v", open)
			}
			on.Store(false)
			d := dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
			defer dbkit.MustClose(t, d)
			if n, err := dbkit.MustCollection(t, d, "main").Count(); err != nil || n != bulkItems+61 {
				t.Errorf("%d items, %v", n, err)
			}
			checkSpaces(t, d)
		})
	}
}
