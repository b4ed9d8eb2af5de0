package db_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/fit"
)

// checkpoints are ways to make one.
var checkpoints = map[string]db.CheckpointOptions{
	"full": {}, "one collection": {Collection: "main"}, "index-only": {IndexOnly: true},
}

// openForCheckpoints makes a small database in "db", on a file system that a test has
// its hands on; nothing is written in the background.
func openForCheckpoints(t testing.TB, fsys vfs.FS) (*db.DB, []*db.Item) {
	t.Helper()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	items := dbkit.Pairs(60, synth.Config{})
	putAll(t, c, items[:50])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	must(t, d.Compact(ctx))
	putAll(t, c, items[50:])
	must(t, d.WaitForIndex(ctx))
	return d, items
}

// there returns the names in the root of a file system, but for that of the database.
func there(t testing.TB, fsys vfs.FS) []string {
	t.Helper()
	names := need(fsys.List(""))(t)
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool { return name == "db" })
}

// checkCopy opens a checkpoint of openForCheckpoints.
func checkCopy(t testing.TB, fsys vfs.FS, dir, what string) {
	t.Helper()
	d, err := db.Open(dir, &db.Options{FS: fsys, MustExist: true})
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	c := dbkit.MustCollection(t, d, "main")
	gives(t, 60, what)(c.Count(t.Context(), ""))
	if r, err := c.Search(ctx, db.Query{Key: "k7", K: 60}); err != nil || len(r.Hits) != 60 {
		t.Errorf("%s: %v, %v", what, r, err)
	}
	all, _ := dbkit.Findings(t, d, db.VerifyOptions{Deep: true})
	for _, f := range all {
		t.Errorf("%s: %v", what, f)
	}
	fine(t, d.Close(), what)
}

// Whichever change to the file system fails while a checkpoint is made: it is an error,
// nothing is left, the database goes on, and the next attempt comes to its end.
func TestEveryFailedChangeOfACheckpoint(t *testing.T) {
	dbkit.LongTest(t)
	for what, opt := range checkpoints {
		t.Run(what, func(t *testing.T) {
			// not those of the store itself, which it has flushed
			fail := &dbkit.FailOnce{Fired: true, On: func(op errorfs.Op) bool {
				return dbkit.IsWrite(op) && !strings.HasPrefix(op.Path, "db")
			}}
			mem := vfs.NewMem()
			fsys := errorfs.Wrap(mem, fail)
			d, _ := openForCheckpoints(t, fsys)
			defer func() { dbkit.MustClose(t, d) }()
			for k := 0; ; k++ {
				if !effort.Sampled(k, 7) {
					continue
				}
				fail.Mu.Lock()
				fail.K, fail.Fired = k, false
				fail.Mu.Unlock()
				err := d.Checkpoint(ctx, "copy", opt)
				fail.Mu.Lock()
				fired := fail.Fired
				fail.Fired = true
				fail.Mu.Unlock()
				stopIf(t, err != nil && (!errors.Is(err, dbkit.ErrInjected) || errors.Is(err, db.ErrFailed) ||
					strings.Count(err.Error(), "fddhdb: ") != 1), "change %d failed: %v", k, err)
				if left := there(t, mem); err == nil && !slices.Equal(left, []string{"copy"}) ||
					err != nil && !(len(left) == 0 || slices.Equal(left, []string{"copy.incomplete"})) {
					t.Fatalf("change %d failed with %v, and there is %v", k, err, left)
				}
				if _, err := dbkit.MustCollection(t, d, "main").Put(ctx, &db.Item{Key: "k1"}); err != nil {
					t.Fatalf("change %d failed, and then a write: %v", k, err)
				}
				need(dbkit.MustCollection(t, d, "main").Put(ctx, dbkit.Pairs(60, synth.Config{})[1]))(t)
				if err != nil {
					if k%8 > 0 {
						continue
					}
					must(t, d.Checkpoint(ctx, "copy", opt), "change", k, "failed, and the next attempt")
				}
				checkCopy(t, mem, "copy", fmt.Sprintf("change %d failed", k))
				must(t, mem.RemoveAll("copy"))
				if !fired {
					t.Logf("%d changes failed in turn", k)
					return
				}
			}
		})
	}
}

// A read that fails is an error of the checkpoint, and nothing is left of it.
func TestEveryFailedReadOfACheckpoint(t *testing.T) {
	dbkit.LongTest(t)
	for what, opt := range checkpoints {
		mem := vfs.NewMem()
		fail := &dbkit.FailOnce{Fired: true,
			On: func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileReadAt }}
		fsys := errorfs.Wrap(mem, fail)
		d, _ := openForCheckpoints(t, fsys)
		dbkit.MustClose(t, d)
		for k := 0; ; k++ {
			if !effort.Sampled(k, 11) {
				continue
			}
			d := dbkit.MustOpen(t, "db", &db.Options{FS: fsys, CacheBytes: 1})
			must(t, d.WaitForIndex(ctx))
			fail.Mu.Lock()
			fail.K, fail.Fired = k, false
			fail.Mu.Unlock()
			err := d.Checkpoint(ctx, "copy", opt)
			fail.Mu.Lock()
			fired := fail.Fired
			fail.Fired = true
			fail.Mu.Unlock()
			left := there(t, mem)
			stopIf(t, (err == nil) != slices.Equal(left, []string{"copy"}) || err != nil && len(left) > 0,
				"%s, read %d failed: %v, and there is %v", what, k, err, left)
			failIf(t, err != nil && (!errors.Is(err, dbkit.ErrInjected) || errors.Is(err, db.ErrCorrupt)),
				"%s, read %d failed: %v", what, k, err)
			dbkit.MustClose(t, d)
			if err == nil {
				checkCopy(t, mem, "copy", what)
				must(t, mem.RemoveAll("copy"))
			}
			if !fired {
				break
			}
		}
	}
}

// Whenever the machine stops: a checkpoint is there whole, or there is none, and it can
// be made again; the database is what it was.
func TestCrashesAroundACheckpoint(t *testing.T) {
	dbkit.LongTest(t)
	for what, opt := range checkpoints {
		t.Run(what, func(t *testing.T) {
			c := newCrasher(t)
			d, _ := openForCheckpoints(t, errorfs.Wrap(c.mem, c))
			c.begin(0, what, effort.Of(1, 3))
			must(t, d.Checkpoint(ctx, "copy", opt))
			c.begin(0, "", 0)
			c.crashes = append(c.crashes, crash{"at the end", c.mem.CrashClone(vfs.CrashCloneCfg{}), 1})
			dbkit.MustClose(t, d)
			whole := 0
			for i, cr := range c.crashes {
				_, err := cr.fs.Stat("copy")
				if err == nil {
					whole++
					checkCopy(t, cr.fs, "copy", cr.what)
				} else if !errors.Is(err, fs.ErrNotExist) || cr.step == 1 {
					t.Errorf("%s: %v", cr.what, err)
				}
				if i%10 > 0 && err != nil {
					continue
				}
				d, err := db.Open("db", &db.Options{FS: cr.fs, MustExist: true})
				must(t, err, cr.what)
				if err := d.Checkpoint(ctx, "copy", opt); err != nil && !errors.Is(err, db.ErrExists) {
					t.Errorf("%s: %v", cr.what, err)
				}
				dbkit.MustClose(t, d)
				checkCopy(t, cr.fs, "copy", cr.what)
				checkCopy(t, cr.fs, "db", cr.what)
			}
			failIf(t, whole == 0, "none was whole")
			t.Logf("%d crashes, in %d of them it was whole", len(c.crashes), whole)
		})
	}
}

// at is called with every operation on a file system.
type at func(n int)

type counted struct {
	mu sync.Mutex
	n  int
	at at
}

func (c *counted) MaybeError(errorfs.Op) error {
	c.mu.Lock()
	c.n++
	n, at := c.n, c.at
	c.mu.Unlock()
	if at != nil {
		at(n)
	}
	return nil
}

func (c *counted) String() string { return "counted" }

// Wherever it is cancelled, and wherever Close comes, a checkpoint leaves nothing, or is complete.
func TestCancelledCheckpoint(t *testing.T) {
	t.Parallel()
	for what, opt := range checkpoints {
		for _, closes := range []bool{false, true} {
			mem := vfs.NewMem()
			count := &counted{}
			fsys := errorfs.Wrap(mem, count)
			d, _ := openForCheckpoints(t, fsys)
			completed := 0
			for k := 1; ; k += 3 + k/4 {
				if testing.Short() {
					k *= 3
				}
				ctx, cancel := context.WithCancel(ctx)
				closed := make(chan error, 1)
				count.mu.Lock()
				count.n, count.at = 0, func(n int) {
					switch {
					case n == k && closes:
						go func() { closed <- d.Close() }()
					case n == k:
						cancel()
					}
				}
				count.mu.Unlock()
				err := d.Checkpoint(ctx, "copy", opt)
				count.mu.Lock()
				reached := count.n >= k
				count.at = nil
				count.mu.Unlock()
				want := context.Canceled
				if closes {
					want = db.ErrClosed
				}
				stopIf(t, err != nil && !errors.Is(err, want), "%s, at operation %d: %v", what, k, err)
				left := there(t, mem)
				stopIf(t, (err == nil) != slices.Equal(left, []string{"copy"}) || err != nil && len(left) > 0,
					"%s, at operation %d: %v, and there is %v", what, k, err, left)
				if closes && reached {
					must(t, <-closed)
					d = dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
				}
				if err == nil {
					completed++
					checkCopy(t, mem, "copy", what)
					must(t, mem.RemoveAll("copy"))
				}
				cancel()
				if !reached {
					break
				}
			}
			dbkit.MustClose(t, d)
			failIf(t, completed == 0, "%s was never complete", what)
		}
	}
}

// A checkpoint takes no folder that it may not have.
func TestCheckpointRefuses(t *testing.T) {
	mem := vfs.NewMem()
	d, _ := openForCheckpoints(t, mem)
	write := func(path string) {
		t.Helper()
		f := need(mem.Create(path, vfs.WriteCategoryUnspecified))(t)
		f.Close()
	}
	for _, dir := range []string{"empty", "foreign.incomplete", "photos.incomplete/store",
		"left.incomplete/creating", "left.incomplete/store"} {
		must(t, mem.MkdirAll(dir, 0o755))
	}
	write("foreign.incomplete/thesis")
	write("photos.incomplete/FDDHDB")
	write("left.incomplete/INCOMPLETE")
	write("left.incomplete/FDDHDB")
	write("left.incomplete/creating/half")
	write("left.incomplete/store/MANIFEST-000001")
	for dir, want := range map[string]error{"empty": db.ErrExists, "db": db.ErrExists,
		"foreign": db.ErrExists, "photos": db.ErrExists, "db/": db.ErrExists} {
		for what, opt := range checkpoints {
			err := d.Checkpoint(ctx, dir, opt)
			failIf(t, !errors.Is(err, want) || !strings.Contains(err.Error(), strings.Trim(dir, "/")),
				"%s to %s: %v", what, dir, err)
		}
	}
	for _, path := range []string{"foreign.incomplete/thesis", "photos.incomplete/store",
		"photos.incomplete/FDDHDB"} {
		fine(t, errOf(mem.Stat(path)))
	}
	errorIs(t, d.Checkpoint(ctx, "copy", db.CheckpointOptions{Collection: "nosuch"}), db.ErrNotFound)
	for what, opt := range checkpoints { // over what a killed one has left, into folders that are not there
		dir := mem.PathJoin("above", what, "left")
		must(t, d.Checkpoint(ctx, dir, opt))
		checkCopy(t, mem, dir, what)
	}
	must(t, d.Checkpoint(ctx, "left", db.CheckpointOptions{}))
	checkCopy(t, mem, "left", "over what another has left")
	// Only one goes on at a time to one folder.
	var second error
	opt := db.CheckpointOptions{IndexOnly: true, Progress: func(string, int64, int64) {
		if second == nil {
			second = d.Checkpoint(ctx, "busy", db.CheckpointOptions{})
		}
	}}
	err := d.Checkpoint(ctx, "busy", opt)
	failIf(t, err != nil || !errors.Is(second, db.ErrLocked) && !errors.Is(second, db.ErrExists),
		"%v, and at the same time %v", err, second)
	checkCopy(t, mem, "busy", "of two at a time")
	db.State(d).Engine.Log.Fail(errors.New("the disk is gone"))
	for what, opt := range checkpoints {
		err := d.Checkpoint(ctx, "late", opt)
		failIf(t, !errors.Is(err, db.ErrFailed), "%s of a failed database: %v", what, err)
	}
	_ = d.Close()
	errorIs(t, d.Checkpoint(ctx, "late", db.CheckpointOptions{}), db.ErrClosed)
}

// Paths are those of the operating system, too, and a full disk of the copy does not fail the database.
func TestCheckpointOnDisk(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	putAll(t, c, dbkit.Pairs(60, synth.Config{}))
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	t.Chdir(t.TempDir())
	for what, opt := range checkpoints {
		dir := what + "/"
		must(t, d.Checkpoint(ctx, dir, opt))
		checkCopy(t, vfs.Default, what, what)
		errorIs(t, d.Checkpoint(ctx, dir, opt), db.ErrExists)
	}
	got := listing(t, ".")
	failIf(t, len(got) != len(checkpoints), "there is %v", got)
}
