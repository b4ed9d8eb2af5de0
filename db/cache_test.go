package db_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// The cache holds blocks while memtables are as large as they become: what has been read is
// read again without the file system.
func TestCacheBesideMemtables(t *testing.T) {
	t.Parallel()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem(), NoSync: true})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main", numbersSchema))(t)
	for i := range 90 { // MiB: memtables double from 256 KiB to 32 MiB
		it := numbered(i)
		it.Payload = make([]byte, 1<<20)
		need(c.Put(ctx, it))(t)
	}
	misses := func() uint64 {
		t.Helper()
		for i := range 20 {
			need(c.Get(ctx, fmt.Sprint(i)))(t)
		}
		s := need(d.Stats())(t)
		return uint64(s.Activity.Cache.Misses)
	}
	least, before := uint64(1<<62), misses()
	for range 10 { // compactions read, too, meanwhile
		now := misses()
		least, before = min(least, now-before), now
	}
	if least > 5 {
		t.Errorf("%d blocks of 20 items are read again each time", least)
	}
}
