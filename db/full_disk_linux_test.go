package db_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/testfs"
)

// A disk that others have filled to the last block: the database can be opened, what the refused
// write advises is possible, compaction gives room back, and then the write goes on.
func TestLastBlockOfADisk(t *testing.T) {
	t.Parallel()
	if !testfs.Mounts(t) {
		return
	}
	const n = 400
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprint("k", i))
	}
	for what, frees := range map[string]func(d *db.DB, c *db.Collection) error{
		"delete": func(_ *db.DB, c *db.Collection) error { return errOf(c.Delete(ctx, keys[:n-n/20]...)) },
		"drop":   func(d *db.DB, _ *db.Collection) error { return d.DropCollection(ctx, "main") },
	} {
		t.Run(what, func(t *testing.T) {
			disk := testfs.MountDisk(t, 40<<20)
			dir := filepath.Join(disk, "x.db")
			spare := filepath.Join(dir, store.StoreName, store.SpareName)
			d := dbkit.MustOpen(t, dir, nil)
			for _, name := range []string{"main", "other"} {
				need(d.CreateCollection(ctx, name, db.Schema{Bits: 64}))(t)
			}
			c := dbkit.MustCollection(t, d, "main")
			for i, key := range keys {
				need(c.Put(ctx, &db.Item{Key: key, Code: codeAt(i),
					Payload: testfs.Noise(20000, uint64(i))}))(t)
			}
			for range 2 { // the second opening removes the old logs and tables
				must(t, d.Compact(ctx))
				d, _ = reopen(t, d, dir, nil)
			}
			dbkit.MustClose(t, d)
			testfs.FillDisk(t, disk, 0)

			reader := dbkit.MustOpen(t, dir, &db.Options{ReadOnly: true})
			copied := filepath.Join(t.TempDir(), "copy.db")
			must(t, reader.Checkpoint(ctx, copied, db.CheckpointOptions{}))
			dbkit.MustClose(t, reader)
			_, err := os.Stat(filepath.Join(copied, store.StoreName, store.SpareName))
			failIf(t, err == nil, "a checkpoint has a spare file")
			info, err := os.Stat(spare)
			failIf(t, err != nil || info.Size() != 1<<20, "after reading only: %v, %v", info, err)

			d = dbkit.MustOpen(t, dir, nil)
			c, other := dbkit.MustCollection(t, d, "main"), dbkit.MustCollection(t, d, "other")
			put := func() error { return errOf(other.Put(ctx, &db.Item{Key: "new", Code: codeAt(n)})) }
			var full *db.DiskFullError
			err = put()
			failIf(t, !errors.As(err, &full) || full.Stuck, "put: %v", err)
			fine(t, frees(d, c), what)
			// One that runs by itself may have taken the room, and fail for both: then it is asked for again.
			eventually(t, "compact finds room", func() bool { return d.Compact(ctx) == nil })
			fine(t, put())
			info, err = os.Stat(spare)
			failIf(t, err != nil || info.Size() != 1<<20, "with room again: %v, %v", info, err)
			d, _ = reopen(t, d, dir, nil)
			defer dbkit.MustClose(t, d)
			dbkit.CheckSound(t, d, what)
			n := dbkit.MustStats(t, d).Items
			failIf(t, what == "delete" && n != 21 || what == "drop" && n != 1, "%d items", n)
		})
	}
}
