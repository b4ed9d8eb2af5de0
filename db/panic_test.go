package db_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

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
