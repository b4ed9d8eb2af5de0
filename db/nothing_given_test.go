package db_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// What a method is given may be nothing, of a database that is open and of one that is closed.
// It does not panic.
func TestMethodsThatAreGivenNothing(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
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
