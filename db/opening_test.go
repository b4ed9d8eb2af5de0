package db

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// What a crash has left in the log has to be written into tables when the database is
// opened. Where that is impossible, Open says so, and the folder is free for another try.
func TestOpenEndsWhereTheLogCannotBecomeTables(t *testing.T) {
	mem := vfs.NewCrashableMem()
	d := mustOpen(t, "db", &Options{FS: mem})
	c, err := d.CreateCollection(ctx, "main", pairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	putAll(t, c, viewItems(40, 1))
	mustTrain(t, c, tinyTraining(1, 0))
	if err := d.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	putAll(t, c, viewItems(60, 2))
	b := d.NewBatch()
	for i := range bulkItems { // tables that the log names
		if err := b.Put(c, &Item{Key: string(rune(0x4e00 + i)), Labels: []string{"class1"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(ctx, &Item{Key: "last"}); err != nil { // the load may have been flushed by now
		t.Fatal(err)
	}
	left := mem.CrashClone(vfs.CrashCloneCfg{})
	mustClose(t, d)
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
			if _, err := vfs.Clone(left, mem, "db", "db"); err != nil {
				t.Fatal(err)
			}
			files := newOpenFiles(mem)
			fsys := errorfs.Wrap(files, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if on.Load() && broken(op) {
					return errInjected
				}
				return nil
			}))
			watched(what, func() {
				d, err := Open("db", &Options{FS: fsys})
				if err == nil {
					d.Close()
				}
				if !errors.Is(err, errInjected) || errors.Is(err, ErrCorrupt) {
					t.Errorf("%v", err)
				}
				t.Log(err)
			})
			if open := files.left(); len(open) > 0 {
				t.Errorf("left open: %v", open)
			}
			on.Store(false)
			d := mustOpen(t, "db", &Options{FS: fsys})
			defer mustClose(t, d)
			if n, err := mustCollection(t, d, "main").Count(); err != nil || n != bulkItems+61 {
				t.Errorf("%d items, %v", n, err)
			}
			checkSpaces(t, d)
		})
	}
}
