package db_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/internal/testfs"
)

// fillDisk fills a database that is on a disk that becomes full, by all ways to write. It
// returns the keys that were acknowledged and those of which that is not known.
func fillDisk(t *testing.T, disk *testfs.SmallDisk, items []*db.Item) (there, unknown []string) {
	d, err := db.Open("db", &db.Options{FS: disk})
	if err != nil {
		return nil, nil
	}
	defer d.Close()
	note := func(err error, keys ...string) {
		switch {
		case err == nil:
			there = append(there, keys...)
		case errors.Is(err, db.ErrFailed):
			unknown = append(unknown, keys...)
		case !errors.Is(err, db.ErrDiskFull):
			t.Errorf("with %d bytes of room left: %v", disk.Room, err)
		}
		if err != nil && strings.Count(err.Error(), "fddhdb:") != 1 {
			t.Errorf("prefix: %v", err)
		}
	}
	c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
	note(err)
	if err != nil {
		return there, unknown
	}
	for i, it := range items {
		note(dbkit.Second(c.Put(ctx, it)), it.Key)
		if i == len(items)/2 {
			_, err := c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 5}})
			note(err)
			note(d.Compact(ctx))
		}
	}
	note(d.Compact(ctx))
	b := d.NewBatch()
	var keys []string
	for i := range bulkItems {
		keys = append(keys, fmt.Sprint("bulk", i))
		if err := b.Put(c, &db.Item{Key: keys[i]}); err != nil {
			t.Fatal(err)
		}
	}
	note(b.Commit(ctx), keys...)
	if len(there) > 0 {
		if _, err := c.Get(ctx, there[0]); err != nil {
			t.Errorf("a read while the disk is full: %v", err)
		}
	}
	return there, unknown
}

// Whenever a disk becomes full: nothing that was acknowledged is lost, and when there is
// room again the database goes on.
func TestDiskFullAtEveryPoint(t *testing.T) {
	t.Parallel()
	items := dbkit.Pairs(24, synth.Config{})
	points := 40
	if testing.Short() {
		points = 2
	}
	const enough = 4 << 20
	first := &testfs.SmallDisk{FS: vfs.NewMem(), Room: enough}
	there, _ := fillDisk(t, first, items)
	if first.Full || len(there) != len(items)+bulkItems {
		t.Fatalf("%d items on a large disk", len(there))
	}
	all := enough - first.Room
	for i := range points {
		room := int64(i)*all/int64(points) + int64(37*i%64)
		mem := vfs.NewMem()
		disk := &testfs.SmallDisk{FS: mem, Room: room, Late: i%2 == 1}
		there, unknown := fillDisk(t, disk, items)
		if !disk.Full {
			t.Fatalf("%d bytes of %d were enough", room, all)
		}
		d, err := db.Open("db", &db.Options{FS: mem})
		if err != nil {
			t.Fatalf("after %d bytes: %v", room, err)
		}
		c, err := d.Collection("main")
		if errors.Is(err, db.ErrNotFound) && len(there) == 0 {
			dbkit.MustClose(t, d)
			continue
		} else if err != nil {
			t.Fatalf("after %d bytes, %d items acknowledged: %v", room, len(there), err)
		}
		found := map[string]bool{}
		for it, err := range c.Items(ctx) {
			if err != nil {
				t.Fatalf("after %d bytes: %v", room, err)
			}
			found[it.Key] = true
		}
		for _, key := range there {
			if !found[key] {
				t.Errorf("after %d bytes: %s was acknowledged and is gone", room, key)
			}
		}
		if len(found) > len(there)+len(unknown) {
			t.Errorf("after %d bytes: %d items, %d acknowledged, %d unknown", room, len(found), len(there), len(unknown))
		}
		checkSpaces(t, d)
		if _, err := c.Put(ctx, &db.Item{Key: "after"}); err != nil {
			t.Errorf("after %d bytes, with room again: %v", room, err)
		}
		dbkit.MustClose(t, d)
	}
}
