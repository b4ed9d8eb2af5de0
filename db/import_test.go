package db_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/bulk/spool"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// mustImport begins an import, in chunks of a few items.
func mustImport(t testing.TB, c *db.Collection, opt db.ImportOptions) *db.Import {
	t.Helper()
	if opt.Source == "" {
		opt.Source = "items"
	}
	im, err := c.NewImport(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	db.Spool(im).ChunkBytes = 500
	return im
}

func mustStage(t testing.TB, im *db.Import, items []*db.Item) {
	t.Helper()
	for _, it := range items {
		if err := im.Put(it); err != nil {
			t.Fatal(err)
		}
	}
}

// importInRuns imports items in so many runs, of which all but the last are interrupted:
// the import is closed, or the database is.
func importInRuns(t testing.TB, w *world, items []*db.Item, runs int, labels ...string) {
	t.Helper()
	before := len(dbkit.AllItems(t, w.c))
	for run := 1; ; run++ {
		im := mustImport(t, w.c, db.ImportOptions{})
		from := im.Rows()
		if want := len(items) * (run - 1) / runs; from != want || im.Items() != want {
			t.Fatalf("run %d goes on at row %d, item %d, not %d", run, from, im.Items(), want)
		}
		if err := im.RegisterLabels(labels); err != nil {
			t.Fatal(err)
		}
		mustStage(t, im, items[from:len(items)*run/runs])
		if n := len(dbkit.AllItems(t, w.c)); n != before {
			t.Fatalf("%d items are visible before the commit", n-before)
		}
		if run == runs {
			if err := im.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			return
		}
		if run%2 == 0 {
			if err := im.Close(); err != nil {
				t.Fatal(err)
			}
		}
		w.reopen()
	}
}

// stagedFolders returns the folders of staged imports.
func stagedFolders(t testing.TB, fsys vfs.FS) []string {
	t.Helper()
	names, err := fsys.List("db/" + store.ImportsName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return names
}

// An import, interrupted or not, stores what the same items stored one by one are.
func TestImportIsAsOneByOne(t *testing.T) {
	dbkit.LongTest(t)
	features := dbkit.ViewItems(120, 5)
	for i, it := range features {
		if it.Key = fmt.Sprint("f", i*7919%1000); i%3 == 0 {
			it.Key = ""
		}
		if i%10 == 0 || len(it.Vectors) == 0 && len(it.Labels) == 0 {
			it.Payload = []byte(fmt.Sprint("payload", i))
		}
	}
	fielded := dbkit.CodeItems(200, 72, 3, prefixed("c"))
	for i, it := range fielded {
		it.Fields = map[string]any{"year": 1990 + i%7, "name": fmt.Sprint("n", i%11), "x": float64(i) / 3, "b": i%2 == 0}
		if i%2 == 0 {
			it.Labels = []string{fmt.Sprint("b", i%5), fmt.Sprint("a", i%3), fmt.Sprint("b", i%5)}
		}
	}
	for name, test := range map[string]struct {
		schema  db.Schema
		items   []*db.Item
		labels  []string
		trained bool
	}{
		"codes":    {db.Schema{Bits: 16}, dbkit.CodeItems(300, 16, 1, nil), nil, true},
		"keys":     {db.Schema{Bits: 72}, dbkit.CodeItems(300, 72, 2, func(i int) string { return fmt.Sprint(i * 7919 % 5000) }), []string{"z", "y"}, true},
		"fields":   {db.Schema{Bits: 72, Fields: []db.Field{{"year", db.Int, true}, {"name", db.String, true}, {"x", db.Float, false}, {"b", db.Bool, true}}}, fielded, []string{"a2", "never"}, true},
		"features": {dbkit.PairsSchema, features, []string{"class2"}, false},
		"trained":  {dbkit.PairsSchema, features, []string{"class2"}, true},
		"little":   {dbkit.PairsSchema, []*db.Item{{Payload: []byte("p")}, {Key: "k"}, {Labels: []string{"l"}}}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var worlds []*world
			for _, n := range []int{0, 1, 4} { // 0: no import
				w := newWorld(t, test.schema, true)
				if test.trained && test.schema.Bits == 0 {
					first := dbkit.Pairs(40, synth.Config{Seed: 9})
					for i, it := range first {
						it.Key = fmt.Sprint("first", i)
					}
					putAll(t, w.c, first)
					dbkit.MustTrain(t, w.c, dbkit.TinyTraining(3))
				}
				if n > 0 {
					importInRuns(t, w, test.items, n, test.labels...)
				} else if test.labels != nil {
					w.put(test.items, func(b *db.Batch) { b.RegisterLabels(w.c, test.labels) })
				} else {
					w.put(test.items)
				}
				worlds = append(worlds, w)
			}
			for _, w := range worlds[1:] {
				sameContents(t, worlds[0].d, w.d)
				if test.trained && test.schema.Bits <= 16 { // the stores are the same
					sameAnswers(t, worlds[0].c, w.c)
				}
				w.reopen()
				sameContents(t, worlds[0].d, w.d)
				dbkit.CheckSound(t, w.d, name)
				if names := stagedFolders(t, w.fs); len(names) > 0 {
					t.Errorf("staged imports: %v", names)
				}
			}
		})
	}
}

// Items that are there already are replaced, in one commit or in parts.
func TestImportThatReplaces(t *testing.T) {
	for _, parts := range []bool{false, true} {
		w := newWorld(t, db.Schema{Bits: 16}, true)
		w.put(dbkit.CodeItems(50, 16, 1, prefixed("k")))
		items := dbkit.CodeItems(90, 16, 2, prefixed("k"))
		items = append(items, &db.Item{Key: "k5", Code: []byte{7, 7}}, &db.Item{Code: []byte{1, 2}})
		im := mustImport(t, w.c, db.ImportOptions{InParts: parts})
		db.SetOneCommit(im, 2000)
		mustStage(t, im, items)
		err := im.Commit(ctx)
		if !parts {
			if !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "replace") {
				t.Fatal(err)
			}
			if n := len(dbkit.AllItems(t, w.c)); n != 50 {
				t.Fatalf("%d items after a commit that was refused", n)
			}
			db.SetOneCommit(im, db.MaxBatchBytes)
			err = im.Commit(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		other := newWorld(t, db.Schema{Bits: 16}, true)
		other.put(dbkit.CodeItems(50, 16, 1, prefixed("k")))
		other.put(items)
		if !parts { // else a batch has renewed what the one after it has deltas of
			sameContents(t, w.d, other.d)
		}
		sameItems(t, w.c, other.c)
		dbkit.CheckSound(t, w.d, "replaced")
	}
}

// What fits into one commit is in one, whatever the labels take that come with it.
func TestImportThatReplacesIsOneCommit(t *testing.T) {
	w := newWorld(t, db.Schema{Bits: 16}, true)
	items := dbkit.CodeItems(50, 16, 1, prefixed("k"))
	w.put(items)
	im := mustImport(t, w.c, db.ImportOptions{})
	if err := im.RegisterLabels([]string{strings.Repeat("a", 200), strings.Repeat("b", 200)}); err != nil {
		t.Fatal(err)
	}
	mustStage(t, im, items)
	db.SetOneCommit(im, im.Bytes())
	before := db.State(w.d).Committer.Sequence()
	if err := im.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if n := db.State(w.d).Committer.Sequence() - before; n != 1 {
		t.Errorf("%d commits", n)
	}
}

func sameItems(t testing.TB, a, b *db.Collection) {
	t.Helper()
	x, y := dbkit.AllItems(t, a), dbkit.AllItems(t, b)
	if len(x) != len(y) {
		t.Fatalf("%d items and %d", len(x), len(y))
	}
	for i := range x {
		if x[i].Key != y[i].Key || !slices.Equal(x[i].Code, y[i].Code) {
			t.Fatalf("item %d is %v and %v", i, x[i], y[i])
		}
	}
}

// A bad item costs itself, a row that is skipped is told of again, and what is staged is
// known of, busy, kept and removed.
func TestStagedImports(t *testing.T) {
	w := newWorld(t, dbkit.PairsSchema, true)
	im := mustImport(t, w.c, db.ImportOptions{})
	items := dbkit.Pairs(60, synth.Config{})
	why := func(i int) string { return fmt.Sprintf("row %d: é%s", i, strings.Repeat("é", 3*i)) }
	for i, it := range items {
		bad := &db.Item{Key: "bad", Vectors: map[string][]float32{"image": {1}}, Labels: []string{"unseen"}}
		if i%7 == 0 {
			if err := im.Put(bad); !errors.Is(err, db.ErrInvalid) {
				t.Fatal(err)
			}
			if err := im.Skip(why(i)); err != nil {
				t.Fatal(err)
			}
		} else if err := im.Put(it); err != nil {
			t.Fatal(err)
		}
	}
	if im.Rows() != 60 || im.Items() != 51 {
		t.Fatalf("%d rows, %d items", im.Rows(), im.Items())
	}
	if _, err := w.c.NewImport(ctx, db.ImportOptions{Source: "items"}); !errors.Is(err, db.ErrBusy) {
		t.Fatal(err)
	}
	other := mustImport(t, w.c, db.ImportOptions{Source: "other"})
	mustStage(t, other, items[:3])
	if removed, err := w.d.RemoveStagedImports(ctx, time.Now().Add(time.Hour)); err != nil || len(removed) > 0 {
		t.Fatalf("removed while they go on: %v, %v", removed, err)
	}
	dbkit.CheckSound(t, w.d, "with staged imports")
	if err := w.d.Checkpoint(ctx, "copy", db.CheckpointOptions{}); err != nil {
		t.Fatal(err)
	}
	if names, err := w.fs.List("copy"); err != nil || slices.Contains(names, store.ImportsName) {
		t.Fatalf("the checkpoint holds %v, %v", names, err)
	}
	w.reopen()
	if err := im.Put(items[0]); err == nil {
		t.Fatal("something was put after the database was closed")
	}
	dbkit.MustClose(t, w.d)
	if d, err := db.Open("db", &db.Options{FS: w.fs, ReadOnly: true}); err != nil {
		t.Fatal(err)
	} else {
		dbkit.MustClose(t, d)
	}
	w.d = dbkit.MustOpen(t, "db", &db.Options{FS: w.fs})
	w.c = dbkit.MustCollection(t, w.d, "main")
	staged, err := w.d.StagedImports(ctx)
	if err != nil || len(staged) != 2 || staged[0].Collection != "main" || staged[0].Bytes == 0 || staged[0].Open || time.Since(staged[0].Touched) > time.Hour {
		t.Fatalf("%+v, %v", staged, err)
	}
	next := 0
	im = mustImport(t, w.c, db.ImportOptions{Skipped: func(row int, got string) {
		if want := strings.ToValidUTF8(why(row)[:min(len(why(row)), 1<<10)], ""); row != next || got != want {
			t.Errorf("row %d, not %d, was skipped: %s", row, next, got)
		}
		next += 7
	}})
	if im.Rows() != 60 || im.Items() != 51 || next != 63 {
		t.Fatalf("%d rows, %d items, %d", im.Rows(), im.Items(), next)
	}
	if err := im.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if labels, _ := w.c.Labels(); slices.Contains(labels, "unseen") {
		t.Error("a label of a bad item")
	}
	if n := len(dbkit.AllItems(t, w.c)); n != 51 {
		t.Errorf("%d items", n)
	}
	if removed, err := w.d.RemoveStagedImports(ctx, time.Now().Add(-time.Hour)); err != nil || len(removed) > 0 {
		t.Fatalf("removed while it is young: %v, %v", removed, err)
	}
	if err := w.d.DropCollection(ctx, "main"); err != nil {
		t.Fatal(err)
	}
	if removed, err := w.d.RemoveStagedImports(ctx, time.Time{}); err != nil || len(removed) != 1 || removed[0].Source != "other" {
		t.Fatalf("of a collection that is gone: %v, %v", removed, err)
	}
}

// An import whose process ended right after its commit is not stored twice, also where what
// it had staged has been removed.
func TestCommittedImportIsRemembered(t *testing.T) {
	for _, kept := range []bool{true, false} {
		w := newWorld(t, dbkit.PairsSchema, true)
		items := dbkit.Pairs(40, synth.Config{})
		for _, it := range items {
			it.Key = ""
		}
		im := mustImport(t, w.c, db.ImportOptions{})
		mustStage(t, im, items)
		if err := im.Skip("bad"); err != nil {
			t.Fatal(err)
		}
		if err := db.CommitAndKeep(ctx, im); err != nil {
			t.Fatal(err)
		}
		w.reopen()
		if staged, err := w.d.StagedImports(ctx); err != nil || len(staged) != 1 || !staged[0].Committed {
			t.Fatalf("%+v, %v", staged, err)
		}
		for left := 1; !kept && left >= 0; left-- {
			if removed, err := w.d.RemoveStagedImports(ctx, time.Now().Add(time.Hour)); err != nil || len(removed) != left {
				t.Fatalf("removed %+v, %v", removed, err)
			}
		}
		w.reopen()
		im = mustImport(t, w.c, db.ImportOptions{})
		if im.Rows() != 41 || im.Items() != 40 {
			t.Errorf("goes on at row %d, item %d", im.Rows(), im.Items())
		}
		if err := im.Put(items[0]); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("put into what is committed: %v", err)
		}
		if err := im.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		if n := len(dbkit.AllItems(t, w.c)); n != 40 {
			t.Errorf("%d items", n)
		}
		if names := stagedFolders(t, w.fs); len(names) > 0 {
			t.Errorf("%v is left", names)
		}
	}
}

// An import whose process ended right before its commit is not committed, for whoever opens
// the database for reading only either, who cannot take back what the process had pledged.
func TestImportThatWasAboutToBeCommitted(t *testing.T) {
	w := newWorld(t, db.Schema{Bits: 16}, true)
	im := mustImport(t, w.c, db.ImportOptions{})
	mustStage(t, im, dbkit.CodeItems(20, 16, 1, nil))
	if err := im.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Spool(im).Promise(db.State(w.d).Committer.Sequence() + 1); err != nil {
		t.Fatal(err)
	}
	dbkit.MustClose(t, w.d)
	for _, readOnly := range []bool{true, false} {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: w.fs, ReadOnly: readOnly})
		if staged, err := d.StagedImports(ctx); err != nil || len(staged) != 1 || staged[0].Committed {
			t.Errorf("opened for reading only: %v: %+v, %v", readOnly, staged, err)
		}
		dbkit.MustClose(t, d)
	}
}

func TestImportRefuses(t *testing.T) {
	w := newWorld(t, db.Schema{Bits: 16}, true)
	for what, source := range map[string]string{"empty": "", "long": strings.Repeat("x", spool.MaxSourceBytes+1), "noise": "\xff"} {
		if _, err := w.c.NewImport(ctx, db.ImportOptions{Source: source}); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	im := mustImport(t, w.c, db.ImportOptions{})
	for what, err := range map[string]error{
		"no item": im.Put(nil), "no code": im.Put(&db.Item{}), "key": im.Put(&db.Item{Key: "\xff", Code: []byte{1, 2}}),
		"label": im.RegisterLabels([]string{""}),
	} {
		if !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if im.Items() != 0 || im.Discard() != nil || im.Close() != nil {
		t.Error("not discarded")
	}
	for what, err := range map[string]error{"put": im.Put(&db.Item{Code: []byte{1, 2}}), "commit": im.Commit(ctx), "skip": im.Skip("")} {
		if !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%s afterwards: %v", what, err)
		}
	}
	if names := stagedFolders(t, w.fs); len(names) > 0 {
		t.Errorf("staged imports: %v", names)
	}
	im = mustImport(t, w.c, db.ImportOptions{}) // and one of nothing
	if err := im.Commit(ctx); err != nil || len(stagedFolders(t, w.fs)) > 0 {
		t.Error(err)
	}
}
