package db_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/testfs"
)

// A largeChange writes much in one call.
type largeChange struct {
	what string
	do   func(*db.Collection) error
	done func(*testing.T, *db.Collection) bool // it is done, rather than not at all
}

var largeChanges = []largeChange{
	{
		"merge", func(c *db.Collection) error { return dbkit.Second(c.MergeLabel(ctx, "class0", "class1")) },
		func(t *testing.T, c *db.Collection) bool {
			n := need(c.CountWhere(ctx, "label = 'class0'"))(t)
			return n == 0
		},
	},
	{
		"index", func(c *db.Collection) error {
			return c.Alter(ctx, db.Alteration{IndexFields: []string{"title", "price"}})
		},
		func(t *testing.T, c *db.Collection) bool { return dbkit.MustSchema(t, c).Fields[1].Indexed },
	},
}

// Wherever a disk becomes full while labels are merged, or an index of fields is made, that is done or
// not at all. With room again it can be done.
func TestLargeChangesOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, ch := range largeChanges {
		t.Run(ch.what, func(t *testing.T) {
			const enough = 64 << 20
			left, done := ch.onFull(t, enough)
			if !done {
				t.Fatal("64 MiB are not enough")
			}
			refused, n := 0, int64(6)
			for i := range n {
				if _, done := ch.onFull(t, (enough-left)*i/n); !done {
					refused++
				}
			}
			if refused < 3 {
				t.Errorf("%d of %d refused", refused, n)
			}
		})
	}
}

// onFull makes the change on a disk with so much room, and reports what room is left, and whether it was
// enough; if not it makes the change with room again.
func (ch *largeChange) onFull(t *testing.T, room int64) (left int64, done bool) {
	t.Helper()
	mem := vfs.NewMem()
	disk := &testfs.SmallDisk{FS: mem, Room: -1}
	d, c, items := labelWorld(t, disk, 80)
	for i, it := range items {
		it.Fields, it.Payload = map[string]any{"title": it.Key, "price": float64(i)}, testfs.Noise(500, uint64(i))
	}
	dbkit.PutAll(t, d, c, items)
	disk.Set(func() { disk.Room = room })
	err := ch.do(c)
	disk.Set(func() { left, disk.Room = disk.Room, -1 })
	if done = err == nil; !done && !errors.Is(err, db.ErrDiskFull) && !errors.Is(err, db.ErrFailed) {
		t.Errorf("room for %d bytes: %v", room, err)
	}
	_ = d.Close() // it may have failed
	d = dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	defer dbkit.MustClose(t, d)
	c = dbkit.MustCollection(t, d, "main")
	dbkit.CheckSound(t, d, "on a full disk")
	if is := ch.done(t, c); done && !is {
		t.Errorf("room for %d bytes: it was acknowledged and is not done", room)
	} else if !is {
		if err := ch.do(c); err != nil {
			t.Errorf("with room again: %v", err)
		}
		dbkit.CheckSound(t, d, "with room again")
	}
	if ch.what == "merge" {
		renamed(items, "class0", "class1")
	}
	checkLabels(t, c, items)
	if n, err := c.CountWhere(ctx, "title >= '' AND price < 40"); n != 40 || err != nil {
		t.Errorf("%d items are found by fields, %v", n, err)
	}
	return left, done
}

// An error while the tables of a merge are written names the merge.
func TestFailedMergeSaysSo(t *testing.T) {
	fail := &dbkit.FailOnce{On: func(op errorfs.Op) bool { return dbkit.IsWrite(op) && strings.Contains(op.Path, "ingest") }}
	fail.Off.Store(true)
	d, c, items := labelWorld(t, errorfs.Wrap(vfs.NewMem(), fail), 60)
	fail.Off.Store(false)
	_, err := c.MergeLabel(ctx, "class0", "class1")
	if !errors.Is(err, dbkit.ErrInjected) || errors.Is(err, db.ErrFailed) || !strings.HasPrefix(err.Error(), `fddhdb: merge of label "class0" into "class1": `) {
		t.Error(err)
	}
	checkLabels(t, c, items)
	mustMerge(t, c, "class0", "class1", renamed(items, "class0", "class1"))
	checkLabels(t, c, items)
	dbkit.CheckSound(t, d, "merged after all")
}
