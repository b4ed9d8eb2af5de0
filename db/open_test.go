package db_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// folderIn makes a folder with these files.
func folderIn(t *testing.T, files map[string]string) string {
	dir := t.TempDir()
	for name, text := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

func listing(t *testing.T, dir string) []string {
	t.Helper()
	entries := need(os.ReadDir(dir))(t)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestOpenRefusesOtherFolders(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		opts  *db.Options
		want  error
		says  string
	}{
		"something else": {map[string]string{"notes.txt": "x"}, nil, db.ErrNotDatabase,
			"something else"},
		"nothing, but must":      {nil, &db.Options{MustExist: true}, db.ErrNotDatabase, "none yet"},
		"a marker of others":     {map[string]string{"FDDHDB": "hello"}, nil, db.ErrNotDatabase, "not ours"},
		"a marker that is empty": {map[string]string{"FDDHDB": ""}, nil, db.ErrNotDatabase, "not ours"},
		"a newer format": {map[string]string{"FDDHDB": `{"fddhdb":"database","format":99}`}, nil,
			db.ErrFormat, "format 99, this version of fddhdb reads format 7 alone"},
		"an earlier format": {map[string]string{"FDDHDB": `{"fddhdb":"database","format":2}`}, nil,
			db.ErrFormat, "format 2, this version of fddhdb reads format 7 alone"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folderIn(t, c.files)
			before := listing(t, dir)
			d, err := db.Open(dir, c.opts)
			if err == nil {
				d.Close()
			}
			stopIf(t, !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says),
				"got %v, want %v that says %q", err, c.want, c.says)
			after := listing(t, dir)
			failIf(t, !slices.Equal(before, after), "the folder held %v, now %v", before, after)
		})
	}
	var fe *db.FormatError
	_, err := db.Open(folderIn(t, map[string]string{"FDDHDB": `{"fddhdb":"database","format":8}`}), nil)
	failIf(t, !errors.As(err, &fe) || fe.Found != 8 || fe.Supported != db.Format, "newer format: %v", err)
	_, err = db.Open(filepath.Join(folderIn(t, map[string]string{"file": ""}), "file"), nil)
	failIf(t, err == nil, "a file was opened as a database")
}

func TestMustExistCreatesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	errorIs(t, errOf(db.Open(dir, &db.Options{MustExist: true})), db.ErrNotDatabase)
	errorIs(t, errOf(os.Stat(dir)), os.ErrNotExist)
}

func TestInterruptedCreationIsDoneAgain(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, store.CreatingName), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, store.CreatingName, "half"), nil, 0o644))
	errorIs(t, errOf(db.Open(dir, &db.Options{MustExist: true})), db.ErrNotDatabase)
	d := dbkit.MustOpen(t, dir, nil)
	dbkit.MustClose(t, d)
	got := listing(t, dir)
	failIf(t, !slices.Equal(got, []string{store.CommitsName, store.MarkerName, store.LockName,
		store.StoreName}), "the folder holds %v", got)
}

// The marker is small and can get lost. What is in the store must not go with it.
func TestLostMarkerIsWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	d, _ := openNew(t, dir, nil, dbkit.PairsSchema, dbkit.Pairs(20, synth.Config{})...)
	dbkit.MustClose(t, d)
	must(t, os.Remove(filepath.Join(dir, store.MarkerName)))
	for _, exist := range []bool{true, false} {
		d, err := db.Open(dir, &db.Options{MustExist: exist})
		if exist {
			stopIf(t, !errors.Is(err, db.ErrNotDatabase), "%v", err)
			continue
		}
		must(t, err)
		holds(t, dbkit.MustCollection(t, d, "main"), 20)
		dbkit.MustClose(t, d)
	}
	dbkit.MustClose(t, dbkit.MustOpen(t, dir, &db.Options{MustExist: true}))
}

func TestFolderOfOthersNamedStoreStays(t *testing.T) {
	dir := t.TempDir()
	thesis := filepath.Join(dir, store.StoreName, "thesis.tex")
	must(t, os.Mkdir(filepath.Dir(thesis), 0o755))
	must(t, os.WriteFile(thesis, []byte("x"), 0o644))
	errorIs(t, errOf(db.Open(dir, nil)), db.ErrNotDatabase)
	got := listing(t, filepath.Dir(thesis))
	failIf(t, !slices.Equal(got, []string{"thesis.tex"}), "the folder holds %v", got)
}

func TestOneFolderHasOneLockHoweverItIsSpelt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	d := dbkit.MustOpen(t, dir, nil)
	defer d.Close()
	t.Chdir(filepath.Dir(dir))
	spellings := []string{"db", "./db/", filepath.Join(dir, "..", "db")}
	if err := os.Symlink(dir, "link"); err == nil { // not everywhere allowed
		spellings = append(spellings, "link")
	}
	for _, s := range spellings {
		_, err := db.Open(s, nil)
		failIf(t, !errors.Is(err, db.ErrLocked), "%s: %v", s, err)
	}
}

func TestLockThatCannotBeTakenIsNotHeld(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, store.LockName), 0o755))
	_, err := db.Open(dir, nil)
	failIf(t, err == nil || errors.Is(err, db.ErrLocked), "%v", err)
}

func TestSecondOpenIsLocked(t *testing.T) {
	dir := t.TempDir()
	d := dbkit.MustOpen(t, dir, nil)
	errorIs(t, errOf(db.Open(dir, nil)), db.ErrLocked)
	// The test runs itself as the other process.
	cmd := exec.Command(os.Args[0], "-test.run=^TestOtherProcess$", "-test.v")
	cmd.Env = append(os.Environ(), "FDDHDB_TEST_DIR="+dir)
	out, err := cmd.CombinedOutput()
	failIf(t, err != nil || !strings.Contains(string(out), "says: "+db.ErrLocked.Error()),
		"in another process: %v\n%s", err, out)
	dbkit.MustClose(t, d)
	dbkit.MustClose(t, dbkit.MustOpen(t, dir, nil))
}

func TestOtherProcess(t *testing.T) {
	dir := os.Getenv("FDDHDB_TEST_DIR")
	if dir == "" {
		t.Skip("part of TestSecondOpenIsLocked")
	}
	_, err := db.Open(dir, nil)
	t.Logf("says: %v", err)
}

func TestClosedDatabase(t *testing.T) {
	d, c, _ := openPairs(t, -1, 3, synth.Config{})
	dbkit.MustClose(t, d)
	var items error
	for _, err := range c.Items(ctx, "") {
		items = err
	}
	b := d.NewBatch()
	errorsAre(t, db.ErrClosed, map[string]error{
		"Close":            d.Close(),
		"Put":              errOf(c.Put(ctx, &db.Item{Key: "x"})),
		"Batch.Put":        b.Put(c, &db.Item{Key: "x"}),
		"Commit":           d.NewBatch().Commit(ctx),
		"Items":            items,
		"CreateCollection": errOf(d.CreateCollection(ctx, "other", dbkit.PairsSchema)),
		"Collection":       errOf(d.Collection("main")),
		"Collections":      errOf(d.Collections()),
		"Get":              errOf(c.Get(ctx, "k0")),
		"Count":            errOf(c.Count(t.Context(), "")),
		"Search":           errOf(c.Search(ctx, db.Query{Code: []byte{0}})),
		"Train":            errOf(c.Train(ctx, db.TrainOptions{})),
		"Stats":            errOf(d.Stats()),
		"Delete":           errOf(c.Delete(ctx, "k0")),
	})
}

func TestTrainRefuses(t *testing.T) {
	t.Parallel()
	few := dbkit.Pairs(6, synth.Config{Classes: 3})
	for name, c := range map[string]struct {
		change func([]*db.Item)
		opt    db.TrainOptions
		want   error
	}{
		"no items": {func(items []*db.Item) { clear(items) },
			db.TrainOptions{Options: fit.Options{Method: model.MethodCCAITQ}}, fit.ErrNoItems},
		"no labels": {func(items []*db.Item) { relabel(items) }, db.TrainOptions{}, model.ErrNoLabels},
		"one class": {func(items []*db.Item) { relabel(items, "cat") }, db.TrainOptions{}, model.ErrOneClass},
		"more than bits": {func(items []*db.Item) { many(items) },
			db.TrainOptions{Options: fit.Options{Bits: 8}}, nil},
		"too many anchors": {nil, db.TrainOptions{Options: fit.Options{Anchors: 7}}, nil},
		"unknown modality": {nil,
			db.TrainOptions{Options: fit.Options{Gamma: map[string]float64{"smell": 1}}}, nil},
		"bits":              {nil, db.TrainOptions{Options: fit.Options{Bits: 12}}, nil},
		"a negative number": {nil, db.TrainOptions{Rows: -1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, col := dbkit.OpenPairs(t)
			items := slices.Clone(few)
			if c.change != nil {
				for i, it := range items {
					own := *it
					items[i] = &own
				}
				c.change(items)
			}
			items = slices.DeleteFunc(items, func(it *db.Item) bool { return it == nil })
			putAll(t, col, items)
			_, err := col.Train(ctx, c.opt)
			stopIf(t, !errors.Is(err, db.ErrInvalid) || (c.want != nil && !errors.Is(err, c.want)), "got %v",
				err)
			failIf(t, strings.Count(err.Error(), "fddhdb:") != 1, "prefix: %v", err)
			s, _ := col.Stats(ctx)
			failIf(t, s.Trained || s.Items != len(items), "afterwards: %+v", s)
			// It can be done right after.
			putAll(t, col, few)
			_, err = col.Train(ctx, db.TrainOptions{})
			failIf(t, err != nil && c.want == nil && name != "more than bits", "a good training after: %v",
				err)
		})
	}
	_, codes := dbkit.OpenCodes(t)
	errorIs(t, errOf(codes.Train(ctx, db.TrainOptions{})), db.ErrInvalid)
}

func relabel(items []*db.Item, labels ...string) {
	for _, it := range items {
		it.Labels = labels
	}
}

func many(items []*db.Item) {
	for i, it := range items {
		it.Labels = []string{fmt.Sprint(2 * i), fmt.Sprint(2*i + 1)}
	}
}

// What is no database of ours is named as far as it can be told, and left as it is.
func TestForeignFoldersAreNamed(t *testing.T) {
	own := t.TempDir()
	d := dbkit.MustOpen(t, own, nil)
	dbkit.MustClose(t, d)
	other := t.TempDir()
	kv := need(pebble.Open(other, &pebble.Options{Logger: store.NewLog(db.State(d).Signals)}))(t)
	must(t, kv.Close())
	file := func(content string) string {
		return filepath.Join(folderIn(t, map[string]string{"file": content}), "file")
	}
	for _, c := range []struct{ dir, says string }{
		{file("SQLite format 3\x00 and so on, for a page"), "an SQLite database"},
		{file("0123456789abcdef\xed\xda\x0c\xed and so on"), "a bbolt database"},
		{file("x"), "is a file; a database is a folder"},
		{other, "a Pebble store that is no database of fddhdb"},
		{filepath.Join(own, store.StoreName), "it is the store of the database in " + own},
		{folderIn(t, map[string]string{"CURRENT": "MANIFEST-000004\n", "IDENTITY": "x", "000001.sst": ""}),
			"a RocksDB database"},
		{folderIn(t, map[string]string{"CURRENT": "MANIFEST-000004\n", "MANIFEST-000004": ""}),
			"a LevelDB database"},
		{folderIn(t, map[string]string{"fddhdb-backups.json": "{}"}), "a repository of backups"},
		{folderIn(t, map[string]string{"thesis.tex": ""}), "holds something else"},
	} {
		names, _ := os.ReadDir(c.dir)
		_, open := db.Open(c.dir, nil)
		_, read := db.Open(c.dir, &db.Options{ReadOnly: true})
		_, verify := db.VerifyFolder(ctx, c.dir, nil, db.VerifyOptions{},
			func(report.Finding) error { return nil })
		for what, err := range map[string]error{"open": open, "read": read, "verify": verify} {
			failIf(t, !errors.Is(err, db.ErrNotDatabase) || !strings.Contains(err.Error(), c.says) ||
				strings.Count(err.Error(), "fddhdb: ") != 1, "%s %s: %v", what, c.says, err)
		}
		after, _ := os.ReadDir(c.dir)
		failIf(t, len(after) != len(names), "%s: %d files, %d before", c.says, len(after), len(names))
	}
}

// A new database has a UUID of its own, and keeps it.
func TestUUIDOfANewDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := dbkit.MustOpen(t, dir, nil)
	failIf(t, !regexp.MustCompile(`^[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}$`).MatchString(d.UUID()),
		"UUID %q", d.UUID())
	uuid := d.UUID()
	dbkit.MustClose(t, d)
	var m struct{ Format int }
	text, err := os.ReadFile(filepath.Join(dir, store.MarkerName))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	failIf(t, err != nil || m.Format != db.Format, "%q, %v", text, err)
	d = dbkit.MustOpen(t, dir, nil)
	failIf(t, d.UUID() != uuid, "UUID %q, and then %q", uuid, d.UUID())
	dbkit.MustClose(t, d)
	other := dbkit.MustOpen(t, t.TempDir(), nil)
	failIf(t, other.UUID() == uuid, "two databases have the same UUID")
	dbkit.MustClose(t, other)
}

// What a crash has left in the log has to be written into tables when the database is
// opened. Where that is impossible, Open says so, and the folder is free for another try.
func TestOpenEndsWhereTheLogCannotBecomeTables(t *testing.T) {
	effort.Slow(t)
	mem := vfs.NewCrashableMem()
	d, c := openNew(t, "db", &db.Options{FS: mem}, dbkit.PairsSchema, dbkit.ViewItems(40, 1)...)
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
		"no table can be created": func(op errorfs.Op) bool {
			return op.Kind == errorfs.OpCreate && sortOf(op.Path) == ".sst"
		},
		"no table can be synced": func(op errorfs.Op) bool {
			return op.Kind >= errorfs.OpFileSync && op.Kind <= errorfs.OpFileSyncTo &&
				sortOf(op.Path) == ".sst"
		},
		"no table can be read": func(op errorfs.Op) bool {
			return op.Kind == errorfs.OpFileReadAt && sortOf(op.Path) == ".sst"
		},
	} {
		t.Run(what, func(t *testing.T) {
			var on atomic.Bool
			on.Store(true)
			mem := vfs.NewMem()
			need(vfs.Clone(left, mem, "db", "db"))(t)
			files := newOpenFiles(mem)
			fsys := failing(files, dbkit.ErrInjected, func(op errorfs.Op) bool {
				return on.Load() && broken(op)
			})
			watched(what, func() {
				d, err := db.Open("db", &db.Options{FS: fsys})
				if err == nil {
					d.Close()
				}
				failIf(t, !errors.Is(err, dbkit.ErrInjected) || errors.Is(err, db.ErrCorrupt), "%v", err)
				t.Log(err)
			})
			open := files.left()
			failIf(t, len(open) > 0, "left open: %v", open)
			on.Store(false)
			d := dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
			defer dbkit.MustClose(t, d)
			holds(t, dbkit.MustCollection(t, d, "main"), bulkItems+61)
			checkSpaces(t, d)
		})
	}
}
