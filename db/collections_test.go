package db_test

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/fit"
)

// allKeys returns all keys of the store.
func allKeys(t testing.TB, d *db.DB) map[string]bool {
	t.Helper()
	keys := map[string]bool{}
	must(t, record.ForEach(db.State(d).Engine.DB, nil, func(key, _ []byte) error {
		keys[string(key)] = true
		return nil
	}))
	return keys
}

// Nothing is left of a collection that is dropped, and nothing else goes; what reads it already goes on.
func TestDropCollection(t *testing.T) {
	t.Parallel()
	opts := &db.Options{FS: vfs.NewMem()}
	d := dbkit.MustOpen(t, "db", opts)
	defer func() { d.Close() }()
	kept := need(d.CreateCollection(ctx, "kept", dbkit.PairsSchema))(t)
	putAll(t, kept, dbkit.Pairs(60, synth.Config{Seed: 1}))
	dbkit.MustTrain(t, kept, db.TrainOptions{Options: fit.Options{Bits: 32}})
	before, items := allKeys(t, d), dbkit.AllItems(t, kept)

	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	put := dbkit.Pairs(80, synth.Config{Seed: 2})
	for i, it := range put {
		it.Fields = map[string]any{"year": int64(i)}
	}
	putAll(t, c, put)
	for range 2 { // so that there is a space that stands by
		dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16}})
	}
	need(c.Update(ctx, db.UpdateOptions{}))(t)
	putAll(t, c, put[:20]) // so that there are retractions
	must(t, d.Compact(ctx))
	kinds := map[byte]bool{}
	for key := range allKeys(t, d) {
		if !before[key] {
			kinds[key[0]] = true
		}
	}
	for _, kind := range []byte{codec.KindItem, codec.KindFieldRows, codec.KindRetraction, codec.KindLessons,
		codec.KindSubstring, codec.KindModel} {
		stopIf(t, !kinds[kind], "the collection has no keys of kind %x", kind)
	}
	snap := need(d.Snapshot())(t)
	defer snap.Close()
	then := need(snap.Collection("main"))(t)
	q := db.Query{From: "image", To: "text", Vector: put[3].Vectors["image"], K: 100}
	want := need(c.Search(ctx, q))(t)
	runs := need(c.SearchRadius(ctx, q, 16))(t)
	defer runs.Close()

	errorIs(t, d.DropCollection(ctx, "nosuch"), db.ErrNotFound)
	must(t, d.DropCollection(ctx, "main"))
	gone := func(c *db.Collection) {
		t.Helper()
		b := d.NewBatch()
		errorsAre(t, db.ErrNotFound, map[string]error{
			"search":   errOf(c.Search(ctx, q)),
			"get":      errOf(c.Get(ctx, "k1")),
			"count":    errOf(c.Count(t.Context(), "")),
			"put":      errOf(c.Put(ctx, put[0])),
			"batch":    b.Put(c, put[0]),
			"delete":   errOf(c.Delete(ctx, "k1")),
			"where":    errOf(c.DeleteWhere(ctx, "NOT label = ''")),
			"train":    errOf(c.Train(ctx, db.TrainOptions{})),
			"update":   errOf(c.Update(ctx, db.UpdateOptions{})),
			"activate": c.Activate(ctx, 1),
			"drop":     d.DropCollection(ctx, "main"),
			"open":     errOf(d.Collection("main")),
			"space":    errOf(c.InSpace(1, 0)),
		})
	}
	gone(c)
	codes := 0
	for _, err := range then.Codes(ctx, "text") {
		must(t, err, "codes of a snapshot")
		codes++
	}
	failIf(t, codes != len(put), "%d codes in the snapshot, want %d", codes, len(put))
	fine(t, errOf(then.Evaluate(ctx,
		db.Evaluation{Queries: map[string][][]float32{"image": {put[3].Vectors["image"]}},
			Labels: [][]string{put[3].Labels}})))
	for key := range allKeys(t, d) {
		failIf(t, key[0] != codec.KindDatabase && !before[key], "key %x is left", key)
		delete(before, key)
	}
	failIf(t, len(before) > 0, "%d keys of another collection are gone", len(before))
	dbkit.EqualItems(t, items, dbkit.AllItems(t, kept))

	// Who reads it already goes on, also while another takes the name.
	other := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 16}))(t)
	need(other.Put(ctx, &db.Item{Key: "k1", Code: []byte{1, 2}}))(t)
	must(t, d.Compact(ctx))
	if got, err := then.Search(ctx, q); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("in the snapshot: %v\n%s", err, cmp.Diff(want, got))
	}
	hits, err := dbkit.Collect(runs.Hits(ctx))
	failIf(t, err != nil || len(hits) != 80, "of a search that had begun: %d hits, %v", len(hits), err)
	errorIs(t, errOf(c.Put(ctx, put[0])), db.ErrNotFound)
	holds(t, other, 1)
	runs.Close()
	snap.Close()
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, "db", opts)
	it, err := dbkit.MustCollection(t, d, "main").Get(ctx, "k1")
	failIf(t, err != nil || it.CodeFrom != "given", "after reopening: %+v, %v", it, err)
	dbkit.EqualItems(t, items, dbkit.AllItems(t, dbkit.MustCollection(t, d, "kept")))
}

// A training of a collection that is dropped ends, whatever it is doing, and leaves nothing.
func TestDropCollectionEndsItsTraining(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{"", "encode"} { // as it begins, and when its space is there
		d, c := dbkit.OpenPairs(t)
		putAll(t, c, dbkit.Pairs(200, synth.Config{}))
		dropped := false
		_, err := c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 32, Progress: func(now string, _,
			_ int64) {
			if dropped || phase != "" && now != phase {
				return
			}
			dropped = true
			fine(t, d.DropCollection(ctx, "main"))
			fine(t, errOf(d.CreateCollection(ctx, "main", db.Schema{Bits: 8})))
		}}})
		failIf(t, !errors.Is(err, db.ErrNotFound) || !dropped, "dropped at %q: %v", phase, err)
		for key := range allKeys(t, d) {
			failIf(t, key[0] > codec.KindName && key[4] != 2, "dropped at %q: key %x", phase, key)
		}
	}
}

// A collection whose codes are being loaded can be dropped.
func TestDropCollectionRightAfterOpening(t *testing.T) {
	t.Parallel()
	opts := &db.Options{FS: vfs.NewMem()}
	d := dbkit.MustOpen(t, "db", opts)
	for _, name := range []string{"a", "b"} {
		c := need(d.CreateCollection(ctx, name, db.Schema{Bits: 32}))(t)
		b := d.NewBatch()
		for i := range state.LoadAtOnce + 50 {
			must(t, b.Put(c, &db.Item{Key: fmt.Sprint(i),
				Code: []byte{byte(i), byte(i >> 8), byte(i >> 16), 7}}))
		}
		must(t, b.Commit(ctx))
	}
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, "db", opts)
	defer d.Close()
	must(t, d.DropCollection(ctx, "a"))
	must(t, d.WaitForIndex(ctx))
	b := dbkit.MustCollection(t, d, "b")
	need(b.Put(ctx, &db.Item{Key: "new", Code: []byte{1, 2, 3, 4}}))(t)
	holds(t, b, state.LoadAtOnce+51)
	names, err := d.Collections()
	diff := cmp.Diff([]string{"b"}, names)
	failIf(t, err != nil || diff != "", "%v, %v", err, diff)
}

// Whenever the power fails, a collection is there whole, or not at all.
func TestCrashesAroundDroppingACollection(t *testing.T) {
	mem := vfs.NewCrashableMem()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	defer func() { d.Close() }()
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	putAll(t, c, dbkit.Pairs(60, synth.Config{}))
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16}})
	want := dbkit.AllItems(t, c)
	before := mem.CrashClone(vfs.CrashCloneCfg{})
	must(t, d.DropCollection(ctx, "main"))
	after := mem.CrashClone(vfs.CrashCloneCfg{})

	was := dbkit.MustOpen(t, "db", &db.Options{FS: before})
	defer was.Close()
	dbkit.EqualItems(t, want, dbkit.AllItems(t, dbkit.MustCollection(t, was, "main")))
	is := dbkit.MustOpen(t, "db", &db.Options{FS: after})
	defer is.Close()
	errorIs(t, errOf(is.Collection("main")), db.ErrNotFound)
	for key := range allKeys(t, is) {
		failIf(t, key[0] != codec.KindDatabase, "key %x is left", key)
	}
}

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
	failIf(t, putAmong > putAlone+20_000, "a put allocates %d bytes, and %d among %d collections", putAlone,
		putAmong, many)
	failIf(t, createAmong > createAlone+20_000, "creating a collection allocates %d bytes, and %d among %d",
		createAlone, createAmong, many)
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
		stopIf(t, err != nil || len(names) != len(want), "%d collections, not %d: %v", len(names), len(want),
			err)
		for _, name := range names {
			c, err := d.Collection(name)
			stopIf(t, err != nil || !want[name], "%s: %v", name, err)
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
			_, err := s.Collection(name)
			failIf(t, (err == nil) != then[i][name], "snapshot %d: %s: %v", i, name, err)
		}
		must(t, s.Close())
	}
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	check()
	dbkit.MustClose(t, d)
}
