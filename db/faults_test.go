package db_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/goleak"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/effort"
)

// openFiles counts what is open of a file system, by name.
type openFiles struct {
	vfs.FS
	mu   sync.Mutex
	open map[string]int
}

func newOpenFiles(fsys vfs.FS) *openFiles { return &openFiles{FS: fsys, open: map[string]int{}} }

func (o *openFiles) count(name string, by int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open[name] += by; o.open[name] == 0 {
		delete(o.open, name)
	}
}

// left returns the names of what is open.
func (o *openFiles) left() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.open))
}

func (o *openFiles) counted(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	o.count(name, 1)
	return &countedFile{File: f, o: o, name: name}, nil
}

func (o *openFiles) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := o.FS.Create(name, c)
	return o.counted(name, f, err)
}

func (o *openFiles) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := o.FS.Open(name, opts...)
	return o.counted(name, f, err)
}

func (o *openFiles) OpenReadWrite(name string, c vfs.DiskWriteCategory,
	opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := o.FS.OpenReadWrite(name, c, opts...)
	return o.counted(name, f, err)
}

func (o *openFiles) OpenDir(name string) (vfs.File, error) {
	f, err := o.FS.OpenDir(name)
	return o.counted(name, f, err)
}

func (o *openFiles) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := o.FS.ReuseForWrite(oldname, newname, c)
	return o.counted(newname, f, err)
}

func (o *openFiles) Lock(name string) (io.Closer, error) {
	l, err := o.FS.Lock(name)
	if err != nil {
		return nil, err
	}
	o.count(name, 1)
	return &countedLock{l, o, name}, nil
}

type countedLock struct {
	io.Closer
	o    *openFiles
	name string
}

func (l *countedLock) Close() error {
	l.o.count(l.name, -1)
	return l.Closer.Close()
}

type countedFile struct {
	vfs.File
	o    *openFiles
	name string
	once sync.Once
}

func (f *countedFile) Close() error {
	f.once.Do(func() { f.o.count(f.name, -1) })
	return f.File.Close()
}

// A faultyCase is something that is done to a database while files fail.
type faultyCase struct {
	name string
	base *vfs.MemFS // what the files are before; the database is in db
	arm  bool       // the database is opened before files begin to fail
	do   func(l *spacesLife) error

	// left, if not nil, checks what else is there afterwards, before the database is opened.
	left func(t *testing.T, label string, fsys vfs.FS, err error)
}

// reads are done to a database in which nothing is to change.
func reads(l *spacesLife) error {
	items := 0
	for it, err := range l.c.Items(ctx, "") {
		if err != nil {
			return err
		}
		if _, err := l.c.Get(ctx, it.Key); err != nil {
			return err
		}
		items++
	}
	for _, plan := range []db.Plan{db.PlanAuto, db.PlanDisk, db.PlanBlockScan} {
		if _, err := l.c.Search(ctx, db.Query{Code: []byte{1, 2}, To: "image", Plan: plan}); err != nil {
			return err
		}
	}
	if _, err := l.c.Count(ctx, "label = 'class0' OR year > 2"); err != nil {
		return err
	}
	_, err := l.d.Stats()
	return err
}

// faultyBase makes the databases that the cases begin with: one that was closed, and one that was not.
func faultyBase(t *testing.T) (closed, crashed *vfs.MemFS) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	l := &spacesLife{fs: mem}
	must(t, l.open())
	items := dbkit.ViewItems(80, 4)
	for i, it := range items {
		it.Fields = map[string]any{"year": i % 5}
	}
	for _, err := range []error{
		l.put(items[:50]),
		errOf(l.c.Train(ctx, dbkit.TinyTraining(1))),
		l.put(items[40:60]),
		errOf(l.c.Train(ctx, dbkit.TinyTraining(2))),
		l.c.Activate(ctx, 2),
		errOf(l.c.Update(ctx, db.UpdateOptions{Teacher: db.TeacherLabels})),
		db.State(l.d).Engine.DB.Flush(),
		l.put(items[55:66]),
	} {
		must(t, err)
	}
	crashed = mem.CrashClone(vfs.CrashCloneCfg{})
	must(t, l.close())
	return mem.CrashClone(vfs.CrashCloneCfg{}), crashed
}

func faultyCases(t *testing.T) []faultyCase {
	closed, crashed := faultyBase(t)
	items := dbkit.ViewItems(80, 4)
	return append(copyingCases(t, closed), []faultyCase{
		{name: "open new", base: vfs.NewMem(), do: (*spacesLife).open},
		{name: "open", base: closed, do: (*spacesLife).open},
		{name: "open after a crash", base: crashed, do: (*spacesLife).open},
		{name: "read", base: closed, arm: true, do: reads},
		{name: "write", base: closed, arm: true,
			do: func(l *spacesLife) error { return l.put(items[62:72], "new") }},
		{name: "delete and merge", base: crashed, arm: true, do: func(l *spacesLife) error {
			return l.batch(func(b *db.Batch) error {
				b.Delete(l.c, "k1")
				return b.Merge(l.c, &db.Item{Key: "k2", Labels: []string{"class3"}})
			})
		}},
		{name: "flush", base: crashed, arm: true, do: func(l *spacesLife) error {
			if err := l.put(items[70:75]); err != nil {
				return err
			}
			flushed, err := db.State(l.d).Engine.DB.AsyncFlush()
			if err == nil {
				select {
				case <-flushed:
				// where no table can be written, it is tried for ever
				case <-time.After(50 * time.Millisecond):
				}
			}
			return err
		}},
		{name: "compact", base: crashed, arm: true,
			do: func(l *spacesLife) error { return l.d.Compact(ctx) }},
		{name: "train", base: closed, arm: true, do: func(l *spacesLife) error {
			_, err := l.c.Train(ctx, dbkit.TinyTraining(3))
			return err
		}},
		{name: "update", base: closed, arm: true, do: func(l *spacesLife) error {
			_, err := l.c.Update(ctx, db.UpdateOptions{Space: 1, Teacher: db.TeacherLabels})
			return err
		}},
		{name: "reindex", base: closed, arm: true, do: func(l *spacesLife) error {
			_, err := l.c.Reindex(ctx, db.ReindexOptions{Activate: true})
			return err
		}},
		{name: "drop", base: closed, arm: true,
			do: func(l *spacesLife) error { return l.c.DropSpace(ctx, 1) }},
		{name: "load", base: closed, arm: true, do: func(l *spacesLife) error {
			b := l.d.NewBatch()
			for i := range bulkItems {
				if err := b.Put(l.c, &db.Item{Key: fmt.Sprint("bulk", i),
					Labels: []string{"class1"}}); err != nil {
					return err
				}
			}
			return b.Commit(ctx)
		}},
		{name: "close", base: crashed, arm: true, do: func(l *spacesLife) error {
			if err := l.put(items[70:75]); err != nil {
				return err
			}
			return l.close()
		}},
	}...)
}

// run does it while the k-th operation of a sort fails, and from then on all if forever, and closes the
// database. It returns what failed, whether it came to that, and the states that may be there afterwards.
func (c faultyCase) run(fail *dbkit.FailOnce) (mem *vfs.MemFS, files *openFiles, before lifeState,
	err error) {
	mem = vfs.NewMem()
	names, err := c.base.List("")
	if err != nil {
		return nil, nil, before, err
	}
	for _, name := range names {
		if _, err := vfs.Clone(c.base, mem, name, name); err != nil {
			return nil, nil, before, err
		}
	}
	files = newOpenFiles(mem)
	fail.Off.Store(true)
	l := &spacesLife{fs: errorfs.Wrap(files, fail), cache: 1}
	if c.arm {
		if err := l.open(); err != nil {
			return nil, nil, before, err
		}
		if before, err = stateOf(l.d); err != nil {
			return nil, nil, before, err
		}
		if err := l.d.WaitForIndex(ctx); err != nil {
			return nil, nil, before, err
		}
	}
	fail.Off.Store(false)
	err = c.do(l)
	if !fail.Forever {
		fail.Off.Store(true)
	}
	_ = l.close()
	fail.Off.Store(true)
	return mem, files, before, err
}

// watched runs f, and ends the process with all goroutines where it does not return.
func watched(what string, f func()) {
	timer := time.AfterFunc(2*time.Minute, func() {
		buf := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "%s: hangs\n%s\n", what, buf[:runtime.Stack(buf, true)])
		os.Exit(2)
	})
	defer timer.Stop()
	f()
}

// Whichever operation on a file fails, once or from then on for ever, whatever is being
// done: it ends, with an error or without; nothing panics; the database can be closed,
// which leaves neither goroutines nor open files; and when it is opened again, everything
// that was acknowledged is there, and what was not is there whole or not at all.
func TestEveryFailedOperation(t *testing.T) {
	effort.Slow(t)
	for i, c := range faultyCases(t) {
		t.Run(c.name, func(t *testing.T) { everyFailedOperation(t, c, i) })
	}
}

func everyFailedOperation(t *testing.T, c faultyCase, number int) {
	mem, _, before, err := c.run(&dbkit.FailOnce{K: 1 << 40})
	must(t, err, c.name)
	after := stateIn(t, mem)
	if !c.arm { // opening changes nothing
		before = after
	}
	for i, forever := range []bool{false, true} {
		for j, kind := range []func(errorfs.Op) bool{dbkit.IsWrite, isRead} {
			if !effort.Sampled(number+i+2*j, 6) {
				continue
			}
			what := []string{"write", "read"}[j]
			failed, done := 0, 0
			for k := 0; ; k += stride(k) {
				fail := &dbkit.FailOnce{K: k, On: kind, Forever: forever}
				label := fmt.Sprintf("%s, %s %d fails, and those after it: %v", c.name, what, k, forever)
				var mem *vfs.MemFS
				var files *openFiles
				var err error
				here := goleak.IgnoreCurrent()
				watched(label, func() { mem, files, _, err = c.run(fail) })
				if !fail.Hit() {
					must(t, err, label, "nothing has failed, and it did")
					t.Logf(
						"%s: of %d %ss those that were made to fail, and those after them: %v, failed it %d times", c.name, k, what, forever, failed)
					break
				}
				if done++; err != nil {
					failed++
				}
				left := append(slices.Clone(leftByPebble), here)
				if errors.Is(err, store.ErrGivenUp) {
					left = append(left, leftWhereGivenUp)
				}
				leak := goleak.Find(left...)
				failIf(t, leak != nil, "%s: %v; %v", label, err, leak)
				open := slices.DeleteFunc(files.left(), leftByCheckpoint)
				failIf(t, len(open) > 0, "%s: %v; left open: %v", label, err, open)
				failIf(t, err != nil && strings.Count(err.Error(), "fddhdb:") > 1, "%s: %v", label, err)
				want := between(before, after)
				if err == nil && forever == false {
					want = between(after, after)
				}
				watched(label+", opening", func() {
					if c.left != nil {
						c.left(t, label, mem, err)
					}
					checkLeft(t, label, mem, want)
				})
			}
		}
	}
}

// leftByCheckpoint says whether Pebble may have left a folder open, see copies.pebbleCheckpoint.
func leftByCheckpoint(name string) bool {
	return strings.HasSuffix(name, "/"+store.CreatingName) || strings.HasPrefix(name, "db/"+
		store.CheckpointsName+"/") && strings.HasSuffix(name, "/"+store.StoreName)
}

// stride is the distance to the next operation that is made to fail.
func stride(k int) int {
	switch {
	case !effort.Long():
		return 1 + 3*k
	case k < 300:
		return 1
	}
	return k / 10
}

func isRead(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsRead }

// stateIn opens what is there, and closes it.
func stateIn(t *testing.T, fsys vfs.FS) lifeState {
	t.Helper()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
	defer dbkit.MustClose(t, d)
	return need(stateOf(d))(t)
}

// checkLeft opens what is left, checks that it is one of the states that are possible,
// and that it can be written to.
func checkLeft(t *testing.T, label string, fsys vfs.FS, possible func(lifeState) error) {
	t.Helper()
	d, err := db.Open("db", &db.Options{FS: fsys})
	must(t, err, label)
	defer dbkit.MustClose(t, d)
	must(t, inconsistency(d), label)
	s, err := stateOf(d)
	if err == nil {
		err = possible(s)
	}
	must(t, err, label)
	if c, err := d.Collection("main"); err == nil {
		it := &db.Item{Key: "after"}
		if s, err := c.Schema(); err == nil && len(s.Modalities) == 0 {
			it.Code = make([]byte, s.Bits/8)
		}
		must(t, errOf(c.Put(ctx, it)), label)
	}
}
