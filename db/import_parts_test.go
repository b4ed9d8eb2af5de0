package db_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// progressOf returns how many items an import has stored, as its mark says.
func progressOf(d *db.DB) (int, error) {
	mark, err := d.Mark("import")
	if errors.Is(err, db.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(mark))
}

// importParts stores items in parts, from where the mark of an interrupted import says. The mark is
// as it says in the last part, and goes afterwards.
func importParts(d *db.DB, c *db.Collection, items []*db.Item, part int) error {
	from, err := progressOf(d)
	if err != nil {
		return err
	}
	for from < len(items) {
		to := min(from+part, len(items))
		b := d.NewBatch()
		for _, it := range items[from:to] {
			b.Put(c, it)
		}
		b.Mark("import", []byte(strconv.Itoa(to)))
		if err := b.Commit(ctx); err != nil {
			return err
		}
		from = to
	}
	b := d.NewBatch()
	b.Mark("import", nil)
	return b.Commit(ctx)
}

// partRows is how many items importLife imports: two parts that are bulk loads, and a small one.
const partRows = 2*bulkItems + 100

// importLife imports items in parts, twice if the first time fails without failing the database.
func importLife(fsys vfs.FS, items []*db.Item) (imported bool, err error) {
	d, err := db.Open("db", &db.Options{FS: fsys})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: 16})
	if err != nil {
		return false, err
	}
	for range 2 {
		if err = importParts(d, c, items, bulkItems); err == nil {
			return true, nil
		}
	}
	return false, err
}

// checkImportLife checks what a file system holds after importLife: as many items as the mark says, and
// when the import has gone on all of them once.
func checkImportLife(t *testing.T, what string, fsys vfs.FS, items []*db.Item, imported bool) {
	t.Helper()
	d, err := db.Open("db", &db.Options{FS: fsys})
	must(t, err, what)
	defer d.Close()
	c, err := d.Collection("main")
	if errors.Is(err, db.ErrNotFound) && !imported {
		c, err = d.CreateCollection(ctx, "main", db.Schema{Bits: 16})
	}
	must(t, err, what)
	stored, err := progressOf(d)
	must(t, err, what)
	n := len(dbkit.AllItems(t, c))
	stopIf(t, n != stored && !(n == len(items) && stored == 0) || imported && n != len(items),
		"%s: %d items, and the mark says %d; acknowledged: %v", what, n, stored, imported)
	if n < len(items) || stored > 0 {
		must(t, importParts(d, c, items, bulkItems), what, "again")
	}
	for i, it := range dbkit.AllItems(t, c) {
		stopIf(t, i >= len(items) || string(it.Code) != string(items[i].Code), "%s: item %d is %v", what, i,
			it)
	}
	gives(t, len(items), what)(c.Count(t.Context(), ""))
	_, err = d.Mark("import")
	stopIf(t, !errors.Is(err, db.ErrNotFound), "%s: the mark in the end: %v", what, err)
}

// Whichever change to the file system fails, an import in parts goes on from its mark, and all items
// are there once.
func TestEveryFailedChangeAroundAnImport(t *testing.T) {
	dbkit.LongTest(t)
	items := dbkit.CodeItems(partRows, 16, 1, nil)
	for k := range sampled(7) {
		mem := vfs.NewMem()
		fail := &dbkit.FailOnce{K: k}
		imported, _ := importLife(errorfs.Wrap(mem, fail), items)
		checkImportLife(t, fmt.Sprintf("change %d failed", k), mem, items, imported)
		if !fail.Fired {
			stopIf(t, !imported, "without a failure it is not imported")
			t.Logf("%d changes failed in turn", k)
			return
		}
	}
}

// A machine may stop at any change to the file system: the same holds.
func TestCrashesAroundAnImport(t *testing.T) {
	dbkit.LongTest(t)
	items := dbkit.CodeItems(partRows, 16, 1, nil)
	mem := dbkit.NewCrashFS()
	r := seed.Rand(t, 1, 2)
	var mu sync.Mutex // guards what follows, and r: the store writes in several goroutines
	var crashes []crash
	fsys := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if !effort.Sampled(len(crashes), 11) {
			crashes = append(crashes, crash{})
			return nil
		}
		percent := 50 * r.IntN(2)
		crashes = append(crashes, crash{
			what: fmt.Sprintf("before change %d (%s), %d%% of what is not synced", len(crashes), op.Path,
				percent),
			fs: mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: r}),
		})
		return nil
	}))
	if imported, err := importLife(fsys, items); !imported || err != nil || len(crashes) < 100 {
		t.Fatalf("imported: %v, %v, %d crashes", imported, err, len(crashes))
	}
	for _, cr := range crashes {
		if cr.fs != nil {
			checkImportLife(t, cr.what, cr.fs, items, false)
		}
	}
}

// A batch is full at 16 MiB, one of small items at 64, and at 48 where it has less than a quarter of
// what the collection has.
func TestFullBatch(t *testing.T) {
	effort.Slow(t)
	d, c := dbkit.OpenCodes(t)
	b := d.NewBatch()
	err := b.Put(c, &db.Item{Code: []byte{1, 2}, Payload: make([]byte, 16<<20-2000)})
	failIf(t, err != nil || b.Full(), "%v", err)
	err = b.Put(c, &db.Item{Code: []byte{1, 2}, Payload: make([]byte, 2000)})
	failIf(t, err != nil || !b.Full(), "%v", err)
	small := d.NewBatch()
	for item := (&db.Item{Code: []byte{1, 2}, Payload: make([]byte, 40)}); !small.Full(); {
		must(t, small.Put(c, item))
	}
	n := small.Len()
	failIf(t, n < 900_000 || n > 1_300_000, "%v", n)
	if err := b.Commit(ctx); err != nil { // two items, and a bulk load
		t.Error(err)
	}
	keys := b.Keys()
	failIf(t, fmt.Sprint(keys) != "[0 1]", "%v", keys)
	more := d.NewBatch()
	for range 200 {
		more.Put(c, &db.Item{Code: []byte{1, 2}})
	}
	must(t, more.Commit(ctx))
	large := d.NewBatch()
	for item := (&db.Item{Code: []byte{1, 2}, Payload: make([]byte, 1<<20)}); !large.Full(); {
		must(t, large.Put(c, item))
	}
	n = large.Len()
	failIf(t, n < 46 || n > 48, "%v", n)
}

// A collection of the same name has another number.
func TestCollectionID(t *testing.T) {
	d, c := dbkit.OpenCodes(t)
	must(t, d.DropCollection(ctx, c.Name()))
	again, err := d.CreateCollection(ctx, c.Name(), db.Schema{Bits: 16})
	failIf(t, err != nil || again.ID() == c.ID(), "%v, %v, %v", err, again.ID(), c.ID())
}

// A steadyImporter imports items without keys, each import in two sessions, and alters a
// collection after each: what is there after any of them can be told.
type steadyImporter struct {
	begun, acked      atomic.Int64 // imports
	altering, altered atomic.Int64
}

const (
	steadyImportItems = 60
	steadyAlterations = 100 // at most
)

func steadyAlteration(n int64) db.Alteration {
	return db.Alteration{AddModalities: []db.Modality{{Name: fmt.Sprint("m", n), Dim: 2}},
		AddFields: []db.Field{{Name: fmt.Sprint("f", n), Type: db.Int, Indexed: true}}}
}

// carryOut does the n-th import, and an alteration.
func (w *steadyImporter) carryOut(d *db.DB, into, alter *db.Collection, n int64) error {
	w.begun.Store(n)
	for _, to := range []int{steadyImportItems / 2, steadyImportItems} {
		if err := importSome(d, into, n, to); err != nil {
			return err
		}
	}
	w.acked.Store(n)
	if n > steadyAlterations {
		return nil
	}
	w.altering.Store(n)
	if err := alter.Alter(ctx, steadyAlteration(n)); err != nil {
		return err
	}
	w.altered.Store(n)
	return nil
}

// importSome goes on with the n-th import up to an item, which its mark says then; at the end the mark goes.
func importSome(d *db.DB, c *db.Collection, n int64, to int) error {
	name := fmt.Sprint("import ", n)
	from, err := 0, error(nil)
	if mark, merr := d.Mark(name); merr == nil {
		from, err = strconv.Atoi(string(mark))
	} else if !errors.Is(merr, db.ErrNotFound) {
		err = merr
	}
	if err != nil {
		return err
	}
	b := d.NewBatch()
	for i := from; i < to; i++ {
		b.Put(c, &db.Item{Code: []byte{byte(i), byte(n)}, Payload: []byte(fmt.Sprint(n))})
	}
	b.Mark(name, []byte(strconv.Itoa(to)))
	if err := b.Commit(ctx); err != nil || to < steadyImportItems {
		return err
	}
	b = d.NewBatch()
	b.Mark(name, nil)
	return b.Commit(ctx)
}

// check checks what a crash has left, where so many imports and alterations at least had been
// acknowledged, and so many at most had begun; and goes on with the import that was going on.
func (w *steadyImporter) check(t *testing.T, label string, d *db.DB, least, most [2]int64) {
	t.Helper()
	c := dbkit.MustCollection(t, d, "imports")
	count := func() map[string]int {
		counts := map[string]int{}
		for _, it := range dbkit.AllItems(t, c) {
			counts[string(it.Payload)]++
		}
		return counts
	}
	counts := count()
	for n := int64(1); n <= most[0]; n++ {
		there, name := counts[fmt.Sprint(n)], fmt.Sprint("import ", n)
		mark, err := d.Mark(name)
		stopIf(t, err != nil && !errors.Is(err, db.ErrNotFound), "%v: %v", label, err)
		switch {
		case mark == nil && there == steadyImportItems, mark == nil && there == 0 && n > least[0]:
		case n <= least[0] || string(mark) != fmt.Sprint(there):
			t.Fatalf("%s: import %d of %d to %d: %d items, and its mark says %q", label, n, least[0], most[0],
				there, mark)
		}
		if mark == nil && there > 0 {
			continue // it is done
		}
		must(t, importSome(d, c, n, steadyImportItems), label)
		there = count()[fmt.Sprint(n)]
		stopIf(t, there != steadyImportItems, "%s: import %d has %d items in the end", label, n, there)
	}
	want := dbkit.PairsSchema
	n := int64(0)
	for s := dbkit.MustSchema(t, dbkit.MustCollection(t, d, "main")); ; n++ {
		if n >= least[1] && slices.Equal(s.Modalities, want.Modalities) &&
			slices.Equal(s.Fields, want.Fields) {
			return
		}
		if n == most[1] {
			t.Fatalf("%s: after %d to %d alterations: %+v", label, least[1], most[1], s)
		}
		a := steadyAlteration(n + 1)
		want.Modalities, want.Fields = slices.Concat(want.Modalities, a.AddModalities),
			slices.Concat(want.Fields, a.AddFields)
	}
}

// importAgain imports a thousand items in parts, of which some or all replace those of the time before.
func importAgain(ctx context.Context, d *db.DB, c *db.Collection, r *rand.Rand) error {
	first := r.IntN(500)
	for i := 0; i < 1000; {
		b := d.NewBatch()
		for to := i + 1 + r.IntN(1000); i < min(to, 1000); i++ {
			b.Put(c, &db.Item{Key: fmt.Sprint(first + i), Code: []byte{byte(i), byte(r.IntN(256))}})
		}
		b.Mark("again", []byte(strconv.Itoa(i)))
		if err := b.Commit(ctx); err != nil {
			return err
		}
	}
	return nil
}
