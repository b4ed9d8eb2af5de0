package db_test

import (
	"fmt"
	"maps"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// A commit pays for the collections that it changes, and not for all that there are.
func TestCommitsAmongManyCollections(t *testing.T) {
	const many = 4000
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem(), NoSync: true})
	defer func() { dbkit.MustClose(t, d) }()
	first := need(d.CreateCollection(ctx, "first", dbkit.PairsSchema))(t)
	n := 0
	// allocated returns how many bytes f allocates, on average.
	allocated := func(f func()) uint64 {
		const times = 50
		var before, after runtime.MemStats
		f()
		runtime.ReadMemStats(&before)
		for range times {
			f()
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / times
	}
	put := func() {
		n++
		need(first.Put(ctx, &db.Item{Key: fmt.Sprint(n % 8), Labels: []string{"a"}}))(t)
	}
	create := func() {
		n++
		need(d.CreateCollection(ctx, fmt.Sprint("c", n), dbkit.PairsSchema))(t)
	}
	putAlone, createAlone := allocated(put), allocated(create)
	for range many {
		create()
	}
	putAmong, createAmong := allocated(put), allocated(create)
	// A map of so many collections takes some 100,000 bytes.
	if putAmong > putAlone+20_000 {
		t.Errorf("a put allocates %d bytes, and %d among %d collections", putAlone, putAmong, many)
	}
	if createAmong > createAlone+20_000 {
		t.Errorf("creating a collection allocates %d bytes, and %d among %d", createAlone, createAmong, many)
	}
	t.Logf("put: %d bytes, then %d; create: %d, then %d", putAlone, putAmong, createAlone, createAmong)
}

// Names and numbers of collections that come and go are those of a database that is opened
// again, and snapshots keep theirs.
func TestCollectionsComeAndGo(t *testing.T) {
	mem := vfs.NewMem()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: mem, NoSync: true})
	want := map[string]bool{}
	var snaps []*db.Snapshot
	var then []map[string]bool
	for i := range 200 {
		name := fmt.Sprint("c", i%70)
		if want[name] {
			must(t, d.DropCollection(ctx, name))
			delete(want, name)
		} else {
			c := need(d.CreateCollection(ctx, name, dbkit.PairsSchema))(t)
			putAll(t, c, []*db.Item{{Key: fmt.Sprint(i), Labels: []string{"a"}}})
			want[name] = true
		}
		if i%40 == 0 {
			s := need(d.Snapshot())(t)
			snaps, then = append(snaps, s), append(then, maps.Clone(want))
		}
	}
	check := func() {
		t.Helper()
		names, err := d.Collections()
		if err != nil || len(names) != len(want) {
			t.Fatalf("%d collections, not %d: %v", len(names), len(want), err)
		}
		for _, name := range names {
			c, err := d.Collection(name)
			if err != nil || !want[name] {
				t.Fatalf("%s: %v", name, err)
			}
			if s, err := c.Stats(); err != nil || s.Items != 1 || s.Name != name {
				t.Fatalf("%+v, %v", s, err)
			}
		}
		if s, err := d.Stats(); err != nil || s.Items != len(want) || len(s.Collections) != len(want) {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	check()
	for i, s := range snaps {
		for j := range 70 {
			name := fmt.Sprint("c", j)
			if _, err := s.Collection(name); (err == nil) != then[i][name] {
				t.Errorf("snapshot %d: %s: %v", i, name, err)
			}
		}
		must(t, s.Close())
	}
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	check()
	dbkit.MustClose(t, d)
}
