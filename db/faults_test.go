package db_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/goleak"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
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

// recovered calls f and returns what it panics with, nil if it does not.
func recovered(f func()) (p any) {
	defer func() { p = recover() }()
	f()
	return nil
}

// openTrained opens a database with items that have codes.
func openTrained(t *testing.T) (d *db.DB, c *db.Collection, dir string) {
	t.Helper()
	dir = t.TempDir()
	d = dbkit.MustOpen(t, dir, nil)
	t.Cleanup(func() { _ = d.Close() })
	c = need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	train(t, c, dbkit.Pairs(300, synth.Config{Classes: 4, Seed: 1}), dbkit.TinyTraining(1))
	return d, c, dir
}

// mustRuns returns what is near an item.
func mustRuns(t *testing.T, c *db.Collection) *db.Runs {
	t.Helper()
	return need(c.SearchRadius(ctx, db.Query{Key: "k1"}, 16))(t)
}

// A program that recovers a panic of the body of a loop can close the database.
func TestPanicInALoop(t *testing.T) {
	t.Parallel()
	d, c, _ := openTrained(t)
	runs := mustRuns(t, c)
	for name, loop := range map[string]any{
		"Items": c.Items(ctx, ""), "Items of a filter": c.Items(ctx, "label != ''"),
		"Sample": c.Sample(ctx, 3, 1, ""),
		"Keys":   c.Keys(ctx, "k"), "Codes": c.Codes(ctx, ""),
		"Runs.All": runs.All(ctx), "Runs.Hits": runs.Hits(ctx),
	} {
		if p := recovered(func() {
			for range reflect.ValueOf(loop).Seq2() {
				panic(name)
			}
		}); p != name {
			t.Errorf("%s: %v", name, p)
		}
	}
	dbkit.MustClose(t, d)
}

// A nil context is a mistake of the program, which panics in the goroutine that makes the
// call. After one that was recovered the database goes on, and can be closed.
func TestNilContext(t *testing.T) {
	t.Parallel()
	d, c, _ := openTrained(t)
	out := t.TempDir()
	folder := need(backup.Folder(filepath.Join(out, "backups")))(t)
	b := d.NewBatch()
	b.Put(c, &db.Item{Key: "new"})
	putMarks(t, d, "position", "1") // that iterations have something to yield

	q := db.Query{Key: "k1"}
	byType := map[reflect.Type]any{
		reflect.TypeFor[*db.Item](): &db.Item{Key: "k1"}, reflect.TypeFor[db.Query](): q,
		reflect.TypeFor[[]db.Query](): []db.Query{q, q},
		reflect.TypeFor[db.Schema]():  db.Schema{Bits: 16}, reflect.TypeFor[backup.Store](): folder,
		reflect.TypeFor[int]():             4,
		reflect.TypeFor[db.TrainOptions](): dbkit.TinyTraining(2),
		reflect.TypeFor[db.Evaluation](): db.Evaluation{
			Queries: map[string][][]float32{"text": {make([]float32, 5)}}, Labels: [][]string{{"class1"}}},
		reflect.TypeFor[db.Alteration](): db.Alteration{AddFields: []db.Field{{Name: "more", Type: db.Int}}},
	}
	strings := map[string]string{
		"Has": "k1", "Get": "k1", "Count": "year = 1", "DeleteWhere": "year = 1", "DropCollection": "main",
		"CreateCollection": "new", "EnsureCollection": "new", "Checkpoint": filepath.Join(out, "copy"),
	}
	// These look at the context only if they wait, or once in many steps.
	patient := map[string]bool{"WaitForIndex": true, "Distances": true, "Drift": true}
	for _, h := range []any{d, c, b, mustRuns(t, c)} {
		for name, m := range methods(reflect.ValueOf(h)) {
			if m.Type().NumIn() == 0 || m.Type().In(0) != reflect.TypeFor[context.Context]() {
				continue
			}
			in := make([]reflect.Value, m.Type().NumIn())
			for i := range in {
				in[i] = reflect.New(m.Type().In(i)).Elem()
				if x, is := byType[m.Type().In(i)]; is {
					in[i].Set(reflect.ValueOf(x))
				} else if in[i].Kind() == reflect.String {
					in[i].SetString(strings[name])
				}
			}
			call := m.Call
			if m.Type().IsVariadic() {
				call = m.CallSlice
			}
			var result []reflect.Value
			if p := recovered(func() {
				if result = call(in); result[0].Kind() == reflect.Func {
					for range result[0].Seq2() {
					}
				}
			}); p == nil && !patient[name] {
				t.Errorf("%T.%s: %v without a panic", h, name, result)
			}
		}
	}
	dbkit.MustTrain(t, c, dbkit.TinyTraining(2))
	dbkit.CheckSound(t, d, "after panics")
	dbkit.MustClose(t, d)
}

// methods returns the methods of a value by name.
func methods(v reflect.Value) map[string]reflect.Value {
	all := map[string]reflect.Value{}
	for i := range v.NumMethod() {
		all[v.Type().Method(i).Name] = v.Method(i)
	}
	return all
}

// What works on a folder that is not open leaves it unlocked. Verification and repair make an
// error of the panic, as they do of those that damage causes.
func TestNilContextOfAFolder(t *testing.T) {
	t.Parallel()
	d, _, dir := openTrained(t)
	folder := need(backup.Folder(t.TempDir()))(t)
	need(d.Backup(ctx, folder, db.BackupOptions{}))(t)
	copied := filepath.Join(t.TempDir(), "copy")
	dbkit.MustClose(t, d)
	var none context.Context
	for name, f := range map[string]func() error{
		"VerifyFolder": func() error {
			return errOf(db.VerifyFolder(none, dir, nil, db.VerifyOptions{}, nil))
		},
		"Repair":  func() error { return errOf(db.Repair(none, dir, nil, db.RepairOptions{}, nil)) },
		"Restore": func() error { return errOf(db.Restore(none, folder, copied, nil, db.RestoreOptions{})) },
	} {
		var err error
		failIf(t, recovered(func() { err = f() }) == nil && err == nil, "%s: neither a panic nor an error",
			name)
		dbkit.MustClose(t, dbkit.MustOpen(t, dir, nil))
	}
	fine(t, errOf(db.Restore(ctx, folder, copied, nil, db.RestoreOptions{})))
}

// A panic of a progress callback comes to the caller, whatever goroutine called back. What the operation had
// begun is as if it had been cancelled: it can be repeated, and the database is sound and closes.
func TestPanicOfAProgress(t *testing.T) {
	t.Parallel()
	d, c, dir := openTrained(t)
	out := t.TempDir()
	folder, err := backup.Folder(filepath.Join(out, "backups"))
	must(t, err)
	copies := 0
	ops := []struct {
		name   string
		closed bool // the database
		do     func(p event.Progress) error
	}{
		{"Train", false, func(p event.Progress) error {
			opt := dbkit.TinyTraining(2)
			opt.Progress = p
			return errOf(c.Train(ctx, opt))
		}},
		{"Reindex", false, func(p event.Progress) error {
			return errOf(c.Reindex(ctx, db.ReindexOptions{Progress: p}))
		}},
		{"Update", false, func(p event.Progress) error {
			putAll(t, c, dbkit.Pairs(30, synth.Config{Classes: 4, Seed: 3}))
			return errOf(c.Update(ctx, db.UpdateOptions{Progress: p}))
		}},
		{"Verify", false, func(p event.Progress) error {
			return errOf(d.Verify(ctx, db.VerifyOptions{Progress: p}, nil))
		}},
		{"Checkpoint", false, func(p event.Progress) error {
			copies++
			return d.Checkpoint(ctx, filepath.Join(out, fmt.Sprint("copy", copies)),
				db.CheckpointOptions{IndexOnly: true, Progress: p})
		}},
		{"Backup", false, func(p event.Progress) error {
			return errOf(d.Backup(ctx, folder, db.BackupOptions{Progress: p}))
		}},
		{"backup.Verify", false, func(p event.Progress) error {
			return errOf(backup.Verify(ctx, folder, backup.VerifyOptions{Progress: p}, nil))
		}},
		{"Restore", true, func(p event.Progress) error {
			copies++
			return errOf(db.Restore(ctx, folder, filepath.Join(out, fmt.Sprint("copy", copies)), nil,
				db.RestoreOptions{Progress: p}))
		}},
		{"VerifyFolder", true, func(p event.Progress) error {
			return errOf(db.VerifyFolder(ctx, dir, nil, db.VerifyOptions{Progress: p}, nil))
		}},
		{"Repair", true, func(p event.Progress) error {
			return errOf(db.Repair(ctx, dir, nil, db.RepairOptions{Progress: p}, nil))
		}},
	}
	closed := false
	for _, op := range ops {
		if op.closed && !closed {
			dbkit.MustClose(t, d)
			closed = true
		}
		for at := range 2 { // at the first call, and at a later one
			calls := 0
			p := recovered(func() {
				err = op.do(func(string, int64, int64) {
					if calls++; calls > at {
						panic("boom")
					}
				})
			})
			failIf(t, p == nil && calls > at || p != nil && !strings.Contains(fmt.Sprint(p), "boom") ||
				calls > at+1 || calls == 0, "%s, call %d: %d calls, %v, panic %v", op.name, at, calls, err, p)
		}
		fine(t, op.do(nil), op.name, "again")
		if !op.closed {
			dbkit.CheckSound(t, d, op.name)
		}
	}
	dbkit.MustClose(t, dbkit.MustOpen(t, dir, nil))
}

// What a method is given may be nothing, of a database that is open and of one that is closed.
// It does not panic.
func TestMethodsThatAreGivenNothing(t *testing.T) {
	d, c := openNew(t, "db", &db.Options{FS: vfs.NewMem()}, dbkit.PairsSchema)
	for _, closed := range []bool{false, true} {
		for _, make := range []func() (any, error){
			func() (any, error) { return d, nil },
			func() (any, error) { return c, nil },
			func() (any, error) { return d.NewBatch(), nil },
			func() (any, error) { return d.Snapshot() },
		} {
			h, err := make()
			if err != nil {
				stopIf(t, !closed || !errors.Is(err, db.ErrClosed), "%v", err)
				continue
			}
			v := reflect.ValueOf(h)
			for i := range v.NumMethod() {
				method := v.Type().Method(i).Name
				if method == "Close" && h == any(d) {
					continue
				}
				callMethod(t, fmt.Sprintf("%s.%s", v.Type(), method), v.Method(i))
			}
		}
		if !closed {
			dbkit.MustClose(t, d)
		}
	}
}

// The functions of the packages are given nothing, too.
func TestFunctionsThatAreGivenNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	d := dbkit.MustOpen(t, "db", nil)
	dbkit.MustClose(t, d)
	folder := need(backup.Folder("backups"))(t)
	for name, f := range map[string]any{
		"Open": db.Open, "Restore": db.Restore, "Repair": db.Repair, "VerifyFolder": db.VerifyFolder,
		"ParseRerank": db.ParseRerank, "ParseTeacher": db.ParseTeacher, "LatencyBound": event.LatencyBound,
		"backup.CheckName": backup.CheckName, "backup.Fetch": backup.Fetch, "backup.Create": backup.Create,
		"backup.DecodeManifest": backup.DecodeManifest,
		"backup.Find":           backup.Find, "backup.List": backup.List, "backup.Prune": backup.Prune,
		"backup.Folder": backup.Folder, "backup.Verify": backup.Verify,
		"VerifyFolder of a database": func(ctx context.Context) error {
			_, err := db.VerifyFolder(ctx, "db", nil, db.VerifyOptions{}, nil)
			return err
		},
		"Repair of a database": func(ctx context.Context) error {
			_, err := db.Repair(ctx, "db", nil, db.RepairOptions{}, nil)
			return err
		},
		"Restore of no store": func(ctx context.Context) error {
			_, err := db.Restore(ctx, nil, "new", nil, db.RestoreOptions{})
			return err
		},
		"backup.Verify of a folder": func(ctx context.Context) error {
			_, err := backup.Verify(ctx, folder, backup.VerifyOptions{}, nil)
			return err
		},
	} {
		callMethod(t, name, reflect.ValueOf(f))
	}
	entries, err := os.ReadDir(".")
	failIf(t, err != nil || len(entries) != 1, "%v, %v", entries, err)
}

// callMethod calls a function with a context and otherwise zero values, and takes all that
// the iterators yield which it returns.
func callMethod(t *testing.T, name string, f reflect.Value) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			stack := strings.Split(string(debug.Stack()), "\n")
			t.Errorf("%s: panic: %v\n%s", name, p, strings.Join(stack[min(len(stack), 7):min(len(stack), 17)],
				"\n"))
		}
	}()
	in := make([]reflect.Value, f.Type().NumIn())
	for i := range in {
		in[i] = reflect.Zero(f.Type().In(i))
		if f.Type().In(i) == reflect.TypeFor[context.Context]() {
			in[i] = reflect.ValueOf(t.Context())
		}
	}
	if f.Type().IsVariadic() {
		in = in[:len(in)-1]
	}
	for _, out := range f.Call(in) {
		if out.Kind() == reflect.Func && !out.IsNil() {
			for range out.Seq2() {
			}
		}
	}
}
