package db_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/internal/testfs"
	"github.com/fddhdb/fddhdb/model/fit"
)

// footprint is what there is of a folder: names, bytes and times.
func footprint(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		var b []byte
		if !e.IsDir() {
			if b, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		all[path] = fmt.Sprintf("%v %v %d bytes %x", info.Mode(), info.ModTime(), len(b),
			b[:min(len(b), 1<<16)])
		return nil
	}))
	return all
}

// killedFolder returns the folder of a database that was not closed, with a space that was
// being built and what a bulk load left.
func killedFolder(t testing.TB) (dir string, items []*db.Item) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	d, c := openNew(t, "db", &db.Options{FS: mem}, dbkit.PairsSchema)
	items = dbkit.Pairs(300, synth.Config{})
	for i, it := range items {
		it.Fields = map[string]any{"year": i}
	}
	train(t, c, items[:280], db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	putEach(t, c, items[280:])
	cancelled, cancel := context.WithCancel(ctx)
	errorIs(t, errOf(c.Reindex(cancelled,
		db.ReindexOptions{Rate: 100, Progress: func(string, int64, int64) { cancel() }})), context.Canceled)
	crash := mem.CrashClone(vfs.CrashCloneCfg{})
	dbkit.MustClose(t, d)
	dir = filepath.Join(t.TempDir(), "db")
	ok, err := vfs.Clone(crash, vfs.Default, "db", dir)
	stopIf(t, err != nil || !ok, "%v, %v", ok, err)
	must(t, os.Mkdir(filepath.Join(dir, store.IngestName), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, store.IngestName, "000000.sst"), []byte("half"), 0o666))
	return dir, items
}

// Reading changes nothing, and shows all that was acknowledged to who did not close.
func TestReadOnlyChangesNothing(t *testing.T) {
	t.Parallel()
	dir, items := killedFolder(t)
	before := footprint(t, dir)
	d := dbkit.MustOpen(t, dir, &db.Options{ReadOnly: true, UpdateItems: 1, UpdateInterval: time.Nanosecond})
	c := dbkit.MustCollection(t, d, "main")
	n := len(dbkit.AllItems(t, c))
	failIf(t, n != len(items), "%d items of %d", n, len(items))
	errorsAre(t, nil, map[string]error{
		"get":      errOf(c.Get(ctx, "k299")),
		"search":   errOf(c.Search(ctx, db.Query{From: "image", Vector: items[0].Vectors["image"]})),
		"radius":   errOf(dbkit.CountWithin(c, db.Query{Key: "k1"}, 3)),
		"where":    errOf(c.Count(ctx, "year > 7")),
		"evaluate": errOf(c.Evaluate(ctx, evaluationOf(items))),
		"stats":    errOf(d.Stats()),
		"explain":  third(dbkit.Explain(ctx, c, db.Query{Key: "k1"}, 3)),
		"verify":   errOf(findingsOf(t, d)),
		"backup":   errOf(d.Backup(ctx, newMemStore(), db.BackupOptions{})),
		"a part": errOf(d.Backup(ctx, newMemStore(),
			db.BackupOptions{Collection: "main", IndexOnly: true})),
	})
	checkCodes(t, c, dbkit.AllItems(t, c))
	s := need(d.Snapshot())(t)
	fine(t, errOf(s.Collection("main")))
	fine(t, s.Close())

	b := d.NewBatch()
	errorsAre(t, db.ErrReadOnly, map[string]error{
		"put":         errOf(c.Put(ctx, items[0])),
		"merge":       errOf(c.Merge(ctx, items[0])),
		"delete":      errOf(c.Delete(ctx, "k1")),
		"deleteWhere": errOf(c.DeleteWhere(ctx, "year > 0")),
		"batch":       b.Put(c, items[1]),
		"create":      errOf(d.CreateCollection(ctx, "other", dbkit.PairsSchema)),
		"alter":       c.Alter(ctx, db.Alteration{AddFields: []db.Field{place}}),
		"encoders":    c.Alter(ctx, db.Alteration{Encoders: []db.Encoder{{Modality: "text"}}}),
		"drop":        d.DropCollection(ctx, "main"),
		"drop space":  c.DropSpace(ctx, 2),
		"train":       errOf(c.Train(ctx, db.TrainOptions{})),
		"update":      errOf(c.Update(ctx, db.UpdateOptions{})),
		"reindex":     errOf(c.Reindex(ctx, db.ReindexOptions{})),
		"activate":    c.Activate(ctx, 1),
		"rollback":    errOf(c.Rollback(ctx)),
		"restore":     errOf(c.RestoreRevision(ctx, 1, 1)),
		"compact":     d.Compact(ctx),
		"acknowledge": errOf(d.AcknowledgeLosses(ctx)),
		// And whatever may be forgotten above.
		"committer": db.State(d).Committer.Do(ctx, 0, func(*state.Tx) error { return nil }),
	}, "fddhdb: ")
	spaces, err := c.Spaces(ctx)
	failIf(t, err != nil || len(spaces) != 2 || spaces[1].State != report.SpaceBuilding, "spaces %+v, %v",
		spaces, err)
	dbkit.MustClose(t, d)
	findings := verifyFolder(t, dir)
	failIf(t, len(findings) > 0, "findings %v", findings)
	equal(t, before, footprint(t, dir))
}

func evaluationOf(items []*db.Item) db.Evaluation {
	e := db.Evaluation{Queries: map[string][][]float32{}}
	for _, it := range items[:20] {
		e.Queries["image"] = append(e.Queries["image"], it.Vectors["image"])
		e.Labels = append(e.Labels, it.Labels)
	}
	return e
}

// A folder that cannot be written to is read as any other.
func TestReadOnlyMedium(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("permissions of folders mean something else there")
	}
	if testfs.Nobody(t, "^TestReadOnlyMedium$") {
		return
	}
	dir, items := killedFolder(t)
	must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			return os.Chmod(path, 0o555)
		} else if err == nil {
			return os.Chmod(path, 0o444)
		}
		return err
	}))
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			return os.Chmod(path, 0o755)
		})
	})
	errorIs(t, errOf(db.Open(dir, nil)), os.ErrPermission)
	d := dbkit.MustOpen(t, dir, &db.Options{ReadOnly: true})
	n := len(dbkit.AllItems(t, dbkit.MustCollection(t, d, "main")))
	failIf(t, n != len(items), "%d items of %d", n, len(items))
	dbkit.MustClose(t, d)
}

// On a file system that refuses every change, reading asks for none.
func TestReadOnlyAsksForNoChange(t *testing.T) {
	mem := vfs.NewMem()
	unpackFolder(t, mem, "golden", goldenArchive)
	d := dbkit.MustOpen(t, "golden", &db.Options{FS: store.ReadFS{FS: mem}, ReadOnly: true})
	n, err := dbkit.MustCollection(t, d, "codes").Count(t.Context(), "")
	failIf(t, err != nil || n < 700, "%d items, %v", n, err)
	dbkit.MustClose(t, d)
}

// refusingFS refuses every change in a folder, as a medium that is mounted for reading only.
type refusingFS struct {
	vfs.FS
	dir string
}

// in returns the file system to change a path with.
func (r refusingFS) in(path string) vfs.FS {
	if strings.HasPrefix(path, r.dir) {
		return store.ReadFS{FS: r.FS}
	}
	return r.FS
}

func (r refusingFS) Create(path string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return r.in(path).Create(path, c)
}

func (r refusingFS) OpenReadWrite(path string, c vfs.DiskWriteCategory,
	o ...vfs.OpenOption) (vfs.File, error) {
	return r.in(path).OpenReadWrite(path, c, o...)
}

func (r refusingFS) ReuseForWrite(old, path string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return r.in(path).ReuseForWrite(old, path, c)
}
func (r refusingFS) Link(old, path string) error   { return r.in(path).Link(old, path) }
func (r refusingFS) Rename(old, path string) error { return r.in(path).Rename(old, path) }
func (r refusingFS) Remove(path string) error      { return r.in(path).Remove(path) }
func (r refusingFS) RemoveAll(path string) error   { return r.in(path).RemoveAll(path) }
func (r refusingFS) MkdirAll(path string, mode os.FileMode) error {
	return r.in(path).MkdirAll(path, mode)
}

// What is on a medium that refuses every change can be backed up, also after a crash, and what
// is restored answers as the database does.
func TestBackupOfReadOnlyMedium(t *testing.T) {
	dir, items := killedFolder(t)
	t.Setenv("TMPDIR", t.TempDir())
	d := dbkit.MustOpen(t, dir, &db.Options{FS: refusingFS{vfs.Default, dir}, ReadOnly: true})
	defer d.Close()
	for what, opt := range map[string]db.BackupOptions{
		"everything":   {},
		"a collection": {Collection: "main"},
		"the index":    {IndexOnly: true},
	} {
		t.Run(what, func(t *testing.T) {
			repo := mustFolder(t)
			m := need(d.Backup(ctx, repo, opt))(t)
			c, now := dbkit.MustCollection(t, restored(t, repo, db.RestoreOptions{}), "main"),
				dbkit.MustCollection(t, d, "main")
			soundRepository(t, repo)
			holds(t, c, len(items))
			q := db.Query{From: "image", Vector: items[0].Vectors["image"], K: 20,
				Rerank: db.RerankProjection}
			got, err := c.Search(ctx, q)
			want, err2 := now.Search(ctx, q)
			failIf(t, err != nil || err2 != nil || len(want.Hits) == 0 || !slices.Equal(got.Hits, want.Hits),
				"found %v, %v; the database finds %v, %v", got, err, want, err2)
			if s, err := d.Stats(); err != nil || m.Sequence != s.Sequence {
				t.Errorf("sequence %d of %d, %v", m.Sequence, s.Sequence, err)
			}
			left, err := filepath.Glob(filepath.Join(os.TempDir(), "fddhdb-*"))
			failIf(t, err != nil || len(left) > 0, "left behind: %v, %v", left, err)
		})
	}
}

// Any number may read, or one may write.
func TestReadersShareTheLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := dbkit.MustOpen(t, dir, nil)
	errorIs(t, errOf(db.Open(dir, &db.Options{ReadOnly: true})), db.ErrLocked)
	dbkit.MustClose(t, d)
	one, two := dbkit.MustOpen(t, dir, &db.Options{ReadOnly: true}),
		dbkit.MustOpen(t, dir, &db.Options{ReadOnly: true})
	dbkit.MustClose(t, one)
	errorIs(t, errOf(db.Open(dir, nil)), db.ErrLocked)
	other := func(options string) string {
		cmd := exec.Command(os.Args[0], "-test.run=^TestOtherReader$", "-test.v")
		cmd.Env = append(os.Environ(), "FDDHDB_TEST_DIR="+dir, "FDDHDB_TEST_OPTIONS="+options)
		out, err := cmd.CombinedOutput()
		failIf(t, err != nil, "%v: %s", err, out)
		return string(out)
	}
	out := other("write")
	failIf(t, !strings.Contains(out, "says: "+db.ErrLocked.Error()), "writing in another process: %s", out)
	out = other("read")
	failIf(t, !strings.Contains(out, "says: <nil>"), "reading in another process: %s", out)
	dbkit.MustClose(t, two)
	out = other("write")
	failIf(t, !strings.Contains(out, "says: <nil>"), "writing when nobody reads: %s", out)
}

func TestOtherReader(t *testing.T) {
	dir := os.Getenv("FDDHDB_TEST_DIR")
	if dir == "" || os.Getenv("FDDHDB_TEST_OPTIONS") == "" {
		t.Skip("part of TestReadersShareTheLock")
	}
	d, err := db.Open(dir, &db.Options{ReadOnly: os.Getenv("FDDHDB_TEST_OPTIONS") == "read"})
	t.Logf("says: %v", err)
	if err == nil {
		dbkit.MustClose(t, d)
	}
}

func TestReadOnlyCreatesNothing(t *testing.T) {
	dir := t.TempDir()
	errorIs(t, errOf(db.Open(dir, &db.Options{ReadOnly: true})), db.ErrNotDatabase)
	names := listing(t, dir)
	failIf(t, len(names) > 0, "the folder holds %v", names)
}

// BenchmarkOpenToRead opens and closes a database of 20,000 items for writing, for reading, and
// for reading where its log has to be read, as it was not closed.
func BenchmarkOpenToRead(b *testing.B) {
	mem := vfs.NewCrashableMem()
	d, c := openNew(b, "db", &db.Options{FS: mem}, dbkit.PairsSchema)
	items := dbkit.Pairs(20000, synth.Config{})
	for i := 0; i < len(items); i += 1000 {
		putAll(b, c, items[i:i+1000])
	}
	crash := mem.CrashClone(vfs.CrashCloneCfg{})
	if err := db.State(d).Engine.DB.Flush(); err != nil { // nothing is left in the log
		b.Fatal(err)
	}
	dbkit.MustClose(b, d)
	for _, from := range []struct {
		name string
		fs   vfs.FS
		opt  db.Options
	}{{"write", mem, db.Options{}}, {"read", mem, db.Options{ReadOnly: true}},
		{"read/killed", crash, db.Options{ReadOnly: true}}} {
		dir := filepath.Join(b.TempDir(), "db")
		need(vfs.Clone(from.fs, vfs.Default, "db", dir))(b)
		b.Run(from.name, func(b *testing.B) {
			for b.Loop() {
				must(b, dbkit.MustOpen(b, dir, &from.opt).Close())
			}
		})
	}
}
