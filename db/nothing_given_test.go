package db_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
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
	c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	for _, closed := range []bool{false, true} {
		for _, make := range []func() (any, error){
			func() (any, error) { return d, nil },
			func() (any, error) { return c, nil },
			func() (any, error) { return d.NewBatch(), nil },
			func() (any, error) { return d.Snapshot() },
			func() (any, error) { return c.NewImport(ctx, db.ImportOptions{Source: "x"}) },
		} {
			h, err := make()
			if err != nil {
				if !closed || !errors.Is(err, db.ErrClosed) {
					t.Fatal(err)
				}
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
	folder, err := backup.Folder("backups")
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]any{
		"Open": db.Open, "Restore": db.Restore, "Repair": db.Repair, "VerifyFolder": db.VerifyFolder,
		"ParseRerank": db.ParseRerank, "ParseTeacher": db.ParseTeacher, "LatencyBound": event.LatencyBound,
		"backup.CheckName": backup.CheckName, "backup.Fetch": backup.Fetch, "backup.Create": backup.Create, "backup.DecodeManifest": backup.DecodeManifest,
		"backup.Find": backup.Find, "backup.List": backup.List, "backup.Prune": backup.Prune, "backup.Folder": backup.Folder, "backup.Verify": backup.Verify,
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
	if entries, err := os.ReadDir("."); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// callMethod calls a function with a context and otherwise zero values, and takes all that
// the iterators yield which it returns.
func callMethod(t *testing.T, name string, f reflect.Value) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			stack := strings.Split(string(debug.Stack()), "\n")
			t.Errorf("%s: panic: %v\n%s", name, p, strings.Join(stack[min(len(stack), 7):min(len(stack), 17)], "\n"))
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

// eachFile parses the files of a package without its tests.
func eachFile(t *testing.T, dir string, do func(f *ast.File)) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), dir+"/"+e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		do(f)
	}
}

// A result has no fields that cannot be read: those of an embedded pointer, which may be
// nil, it has itself, too.
func TestFieldsOfNilPointersCanBeRead(t *testing.T) {
	results := []any{db.CollectionStats{}, db.ModalityDrift{}}
	for _, r := range results {
		v := reflect.ValueOf(r)
		for _, f := range reflect.VisibleFields(v.Type()) {
			if !f.IsExported() {
				continue
			}
			if _, err := v.FieldByIndexErr(f.Index); err != nil {
				if own, _ := v.Type().FieldByName(f.Name); len(own.Index) != 1 {
					t.Errorf("%s.%s: %v", v.Type(), f.Name, err)
				}
			}
		}
	}
	for _, pkg := range []string{".", "backup", "s3"} {
		eachFile(t, pkg, func(f *ast.File) {
			ast.Inspect(f, func(n ast.Node) bool {
				spec, is := n.(*ast.TypeSpec)
				if !is || !spec.Name.IsExported() {
					return true
				}
				if s, is := spec.Type.(*ast.StructType); is {
					for _, field := range s.Fields.List {
						if _, pointer := field.Type.(*ast.StarExpr); pointer && len(field.Names) == 0 &&
							!slices.ContainsFunc(results, func(r any) bool { return reflect.TypeOf(r).Name() == spec.Name.Name }) {
							t.Errorf("%s embeds a pointer: see that its fields can be read where it is nil", spec.Name.Name)
						}
					}
				}
				return true
			})
		})
	}
}

// Figures about a collection that has no codes can be read; those about one that has are
// the same in both places, and once in JSON.
func TestBalanceOfAnUntrainedCollection(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	if _, err := d.CreateCollection(ctx, "learned", dbkit.PairsSchema); err != nil {
		t.Fatal(err)
	}
	c, err := d.CreateCollection(ctx, "given", db.Schema{Bits: 64})
	if err != nil {
		t.Fatal(err)
	}
	putAll(t, c, dbkit.CodeItems(3, 64, 1, nil))
	s, err := d.Stats()
	if err != nil {
		t.Fatal(err)
	}
	given, learned := s.Collections[0], s.Collections[1]
	if learned.BitBalance != 0 || learned.ConstantBits != 0 || learned.Sampled != 0 || learned.Balance != nil {
		t.Errorf("without codes: %+v", learned)
	}
	if given.Balance == nil || given.BitBalance == 0 || given.BitBalance != given.Balance.BitBalance || given.ConstantBits != given.Balance.ConstantBits {
		t.Errorf("of codes: %+v, %+v", given, given.Balance)
	}
	for _, c := range s.Collections {
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		if c.Balance != nil {
			want = 1
		}
		if n := strings.Count(string(b), `"bit_balance":`); n != want {
			t.Errorf("%s", b)
		}
	}
}
