package db_test

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/internal/testfs"
)

const lifeRows = 120

// lifeItems are items without keys, so that one that comes twice is seen; some have labels.
func lifeItems() []*db.Item {
	items := dbkit.CodeItems(lifeRows, 16, 1, nil)
	for i, it := range items {
		if i%3 == 0 {
			it.Labels = []string{fmt.Sprint("l", i%5)}
		}
	}
	return items
}

// importOnce begins or goes on with the import of the items, and commits it.
func importOnce(c *db.Collection, items []*db.Item) error {
	im, err := c.NewImport(ctx, db.ImportOptions{Source: "items"})
	if err != nil {
		return err
	}
	db.Spool(im).ChunkBytes = 100
	for _, it := range items[im.Rows():] {
		if err = im.Put(it); err != nil {
			break
		}
	}
	if err == nil {
		err = im.Commit(ctx)
	}
	return errors.Join(err, im.Close())
}

// importLife opens a database, imports items in two halves, the first of which is
// interrupted, and puts an item. What fails without failing the database is tried again.
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
	if im, err := c.NewImport(ctx, db.ImportOptions{Source: "items"}); err == nil {
		db.Spool(im).ChunkBytes = 100
		for _, it := range items[:lifeRows/2] {
			if im.Put(it) != nil {
				break
			}
		}
		_ = im.Close()
	}
	for range 2 {
		if err = importOnce(c, items); err == nil {
			imported = true
			break
		}
	}
	return imported, errors.Join(err, dbkit.Second(c.Put(ctx, &db.Item{Key: "last", Code: []byte{1, 1}})))
}

// checkImportLife checks what a file system holds after importLife: an import that was not
// acknowledged is done again, and is there once then.
func checkImportLife(t *testing.T, what string, fsys vfs.FS, items []*db.Item, imported bool) {
	t.Helper()
	d, err := db.Open("db", &db.Options{FS: fsys})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer d.Close()
	c, err := d.Collection("main")
	if errors.Is(err, db.ErrNotFound) && !imported {
		c, err = d.CreateCollection(ctx, "main", db.Schema{Bits: 16})
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	count := func() int {
		n := 0
		for _, it := range dbkit.AllItems(t, c) {
			if it.Key != "last" && it.Key != "between" {
				n++
			}
		}
		return n
	}
	if n := count(); n != 0 && n != lifeRows || imported && n == 0 {
		t.Fatalf("%s: %d items, acknowledged: %v", what, n, imported)
	}
	// Other commits are not to be taken for that of the import.
	for range 2 {
		if _, err := c.Put(ctx, &db.Item{Key: "between", Code: []byte{1, 1}}); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	if !imported {
		if err := importOnce(c, items); err != nil {
			t.Fatalf("%s, again: %v", what, err)
		}
	}
	if n := count(); n != lifeRows {
		t.Fatalf("%s: %d items in the end, not %d", what, n, lifeRows)
	}
	i := 0
	for _, it := range dbkit.AllItems(t, c) {
		if it.Key == "last" || it.Key == "between" {
			continue
		}
		if want := items[i]; string(it.Code) != string(want.Code) || fmt.Sprint(it.Labels) != fmt.Sprint(want.Labels) {
			t.Fatalf("%s: item %d is %v, not %v", what, i, it, want)
		}
		i++
	}
	if err := inconsistency(d); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	// One that was done may have been left, where it could not be removed.
	if names, err := fsys.List("db/" + store.ImportsName); err == nil && len(names) > 0 && !imported {
		t.Errorf("%s: staged imports: %v", what, names)
	}
}

// Whichever change to the file system fails, and whatever fails from then on, an import is
// there once, or not at all, and goes on.
func TestEveryFailedChangeAroundAnImport(t *testing.T) {
	dbkit.LongTest(t)
	items := lifeItems()
	for _, forever := range []bool{false, true} {
		again := 0
		for k := 0; ; k++ {
			if !effort.Sampled(k, 11) || forever && !effort.Sampled(k, 3) {
				continue
			}
			mem := vfs.NewMem()
			fail := &dbkit.FailOnce{K: k, Forever: forever}
			imported, err := importLife(errorfs.Wrap(mem, fail), items)
			if !fail.Hit() {
				if err != nil || !imported {
					t.Fatalf("without a failure: %v", err)
				}
				t.Logf("%d changes failed in turn, %d times the import went on at once", k, again)
				break
			}
			if imported {
				again++
			}
			checkImportLife(t, fmt.Sprintf("change %d failed, all from then on: %v", k, forever), mem, items, imported)
		}
		if !forever && again == 0 {
			t.Error("no failure concerned the import alone")
		}
	}
}

// A machine that stops at any change to the file system leaves an import staged, or done
// once.
func TestCrashesAroundAnImport(t *testing.T) {
	dbkit.LongTest(t)
	items := lifeItems()
	mem := dbkit.NewCrashFS()
	r := seed.Rand(t, 1, 2)
	type crash struct {
		what string
		fs   vfs.FS
		done bool
	}
	var crashes []crash
	importing, given, imported := false, false, false
	var mu sync.Mutex // several change files at a time
	fsys := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !dbkit.IsWrite(op) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if importing = importing || strings.Contains(op.Path, store.ImportsName); importing {
			for _, percent := range []int{0, 50} {
				crashes = append(crashes, crash{
					fmt.Sprintf("before change %d (%v %s), %d%% of what is not synced", len(crashes), op.Kind, op.Path, percent),
					mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: r}), imported,
				})
			}
		}
		given = given || path.Base(op.Path) == "COMMIT.tmp"
		if given && op.Kind == errorfs.OpRename && path.Base(path.Dir(op.Path)) == store.ImportsName {
			imported = true // from here on it may be forgotten, and is not yet acknowledged
		}
		return nil
	}))
	d := dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	im := mustImport(t, c, db.ImportOptions{})
	db.Spool(im).ChunkBytes = 100
	mustStage(t, im, items[:lifeRows/2])
	if err := im.Close(); err != nil {
		t.Fatal(err)
	}
	if err := importOnce(c, items); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	imported = true
	mu.Unlock()
	dbkit.MustClose(t, d)
	if len(crashes) < 200 {
		t.Fatalf("%d crashes", len(crashes))
	}
	for i, cr := range crashes {
		if !effort.Sampled(i, 5) {
			continue
		}
		checkImportLife(t, cr.what, cr.fs, items, cr.done)
	}
	t.Logf("%d crashes", len(crashes))
}

// Whatever is damaged of what is staged is staged again.
func TestDamageToStagedItems(t *testing.T) {
	dbkit.LongTest(t)
	items := lifeItems()
	build := func(t testing.TB, mem *vfs.MemFS) *db.DB {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: mem})
		c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: 16})
		if err != nil {
			t.Fatal(err)
		}
		im := mustImport(t, c, db.ImportOptions{})
		db.Spool(im).ChunkBytes = 100
		mustStage(t, im, items[:lifeRows/3])
		if err := im.Close(); err != nil {
			t.Fatal(err)
		}
		im = mustImport(t, c, db.ImportOptions{})
		db.Spool(im).ChunkBytes = 100
		mustStage(t, im, items[lifeRows/3:lifeRows-10])
		if err := im.Close(); err != nil {
			t.Fatal(err)
		}
		return d
	}
	mem := vfs.NewMem()
	dbkit.MustClose(t, build(t, mem))
	files := filesIn(t, mem, "db")
	step := effort.Of(7, 61)
	fewer, places := 0, 0
	for name, content := range files {
		if !strings.Contains(name, store.ImportsName) {
			continue
		}
		for at := 0; at < len(content); at += step {
			places++
			damaged := append([]byte(nil), content...)
			damaged[at] ^= 1 << (at % 8)
			if at%3 == 0 {
				damaged = damaged[:at]
			}
			files[name] = damaged
			fsys := folderFrom(t, files)
			files[name] = content
			d := dbkit.MustOpen(t, "db", &db.Options{FS: fsys, MustExist: true})
			im := mustImport(t, dbkit.MustCollection(t, d, "main"), db.ImportOptions{})
			if n := im.Rows(); n > lifeRows-10 || n != im.Items() {
				t.Fatalf("%s, byte %d: goes on at row %d", name, at, n)
			} else if n < lifeRows-10 || strings.HasSuffix(name, "HEAD") { // the end of that line says nothing
				fewer++
			}
			mustStage(t, im, items[im.Rows():])
			if err := im.Close(); err != nil {
				t.Fatal(err)
			}
			dbkit.MustClose(t, d)
			checkImportLife(t, fmt.Sprintf("%s, byte %d", name, at), fsys, items, false)
		}
	}
	if fewer != places {
		t.Errorf("%d of %d damages were seen", fewer, places)
	}
}

// Damage that comes while an import goes on keeps it from being committed, and nothing is
// visible; and where it is not known whether it was, nobody guesses.
func TestDamageBeforeACommit(t *testing.T) {
	items := lifeItems()
	items[lifeRows/2].Payload = []byte("to be damaged")
	mem := vfs.NewMem()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	defer func() { dbkit.MustClose(t, d) }()
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	im := mustImport(t, c, db.ImportOptions{})
	db.Spool(im).ChunkBytes = 100
	mustStage(t, im, items)
	if err := db.Settle(im); err != nil {
		t.Fatal(err)
	}
	dir := db.Spool(im).Dir()
	staged := dir + "/000001.items"
	testfs.Flip(t, mem, staged, int64(bytes.Index(testfs.ReadFile(t, mem, staged), items[lifeRows/2].Payload)))
	if err := im.Commit(ctx); !errors.Is(err, db.ErrStaged) || !errors.Is(err, db.ErrCorrupt) || !strings.Contains(err.Error(), "begin the import again") {
		t.Fatal(err)
	}
	if n := len(dbkit.AllItems(t, c)); n != 0 {
		t.Fatalf("%d items", n)
	}
	if err := im.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Spool(im).Promise(1<<40 + 1); err != nil {
		t.Fatal(err)
	}
	testfs.Flip(t, mem, dir+"/COMMIT", 3)
	if err := importOnce(c, items); !errors.Is(err, db.ErrStaged) {
		t.Fatal(err)
	}
	im = mustImport(t, c, db.ImportOptions{Restart: true})
	mustStage(t, im, items[im.Rows():])
	if err := im.Commit(ctx); err != nil || len(dbkit.AllItems(t, c)) != lifeRows {
		t.Fatal(err)
	}
}

// An import for which there is no room is refused before it begins; one that fills the disk
// goes on when there is room again.
func TestImportOnAFullDisk(t *testing.T) {
	items := lifeItems()
	disk := &testfs.SmallDisk{FS: vfs.NewMem(), Room: -1}
	d := dbkit.MustOpen(t, "db", &db.Options{FS: disk, ReserveBytes: 1 << 20})
	defer func() { dbkit.MustClose(t, d) }()
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	tell(disk, d, 10<<20)
	if _, err := c.NewImport(ctx, db.ImportOptions{Source: "items", Bytes: 5 << 20}); !errors.Is(err, db.ErrDiskFull) {
		t.Fatal(err)
	}
	if len(stagedFolders(t, disk)) > 0 {
		t.Error("something is staged")
	}
	disk.Set(func() { disk.Room = 1500 })
	if err := importOnce(c, items); !errors.Is(err, db.ErrDiskFull) || errors.Is(err, db.ErrFailed) {
		t.Fatal(err)
	}
	disk.Set(func() { disk.Room = -1 })
	im := mustImport(t, c, db.ImportOptions{})
	if n := im.Rows(); n == 0 || n == lifeRows {
		t.Errorf("goes on at row %d", n)
	}
	if err := im.Close(); err != nil {
		t.Fatal(err)
	}
	if err := importOnce(c, items); err != nil || len(dbkit.AllItems(t, c)) != lifeRows {
		t.Fatal(err)
	}
}

// What an import that is closed has staged is durable: few items, and so many bytes that the writer syncs them by itself.
func TestStagedItemsSurviveACrash(t *testing.T) {
	t.Parallel()
	for what, items := range map[string][]*db.Item{
		"few items":  lifeItems()[:20],
		"many bytes": {{Key: "large", Code: []byte{1, 2}, Payload: make([]byte, 33<<20)}},
	} {
		mem := vfs.NewCrashableMem()
		d := dbkit.MustOpen(t, "db", &db.Options{FS: mem})
		c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: 16})
		if err != nil {
			t.Fatal(err)
		}
		im := mustImport(t, c, db.ImportOptions{})
		mustStage(t, im, items)
		if err := im.Close(); err != nil {
			t.Fatal(err)
		}
		left := mem.CrashClone(vfs.CrashCloneCfg{}) // nothing is left of what is not synced
		dbkit.MustClose(t, d)
		d = dbkit.MustOpen(t, "db", &db.Options{FS: left})
		im = mustImport(t, dbkit.MustCollection(t, d, "main"), db.ImportOptions{})
		if n := im.Rows(); n != len(items) {
			t.Errorf("%s: %d of %d rows are staged after a crash", what, n, len(items))
		}
		if err := im.Commit(ctx); err != nil {
			t.Error(what, err)
		}
		if got := dbkit.AllItems(t, dbkit.MustCollection(t, d, "main")); len(got) != len(items) || len(got[0].Payload) != len(items[0].Payload) {
			t.Errorf("%s: %d of %d items are imported", what, len(got), len(items))
		}
		dbkit.MustClose(t, d)
	}
}
