package importer_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/importer"
	"github.com/fddhdb/fddhdb/files"
)

// table has a bad row, a key that comes twice, and an empty row.
const table = `id,x,year,tags
a,"[1,2]",1999,red
b,"[3,nan]",2000,red
c,"[5,6]",,blue
a,"[7,8]",2001,
`

// write writes a file of a test.
func write(t testing.TB, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// open makes a collection in memory.
func open(t testing.TB, schema db.Schema) (api.Database, api.Collection) {
	t.Helper()
	memory, err := db.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	d := api.Folder(memory, nil)
	t.Cleanup(func() { _ = d.Close() })
	c, err := d.CreateCollection(t.Context(), "main", schema)
	if err != nil {
		t.Fatal(err)
	}
	return d, c
}

var yearSchema = db.Schema{Modalities: []db.Modality{{Name: "x", Dim: 2}},
	Fields: []db.Field{{Name: "year", Type: db.Int}}}

// stored returns the items in words, in order.
func stored(t testing.TB, c api.Collection) (all []string) {
	t.Helper()
	for it, err := range c.Items(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %v %v %v", it.Key, it.Vectors["x"], it.Fields["year"], it.Labels))
	}
	return all
}

// Bad rows, and keys that come twice, are stored, left out or refused as the options say.
func TestImport(t *testing.T) {
	path := write(t, "table.csv", table)
	skip := func(int, error) error { return nil }
	for _, test := range []struct {
		o    importer.Options
		fail string // part of the error; nothing is stored
		want []string
		done importer.Result
	}{
		{o: importer.Options{}, // the first four values of id are not distinct
			fail: `table.csv: there is no field "id": collection "main" has year; IgnoreUnknown leaves aside`},
		{o: importer.Options{OnDuplicate: importer.FirstDuplicate}, fail: `table.csv: line 3: key "b": column "x"`},
		{o: importer.Options{Mapping: importer.Mapping{Key: "id"}, OnError: func(_ int, bad error) error {
			if strings.Contains(bad.Error(), "line 5") {
				return bad
			}
			return nil
		}}, fail: `line 5: the key "a" is that of line 2, too (OnDuplicate FirstDuplicate or LastDuplicate takes`},
		{o: importer.Options{OnError: skip, OnDuplicate: importer.FirstDuplicate},
			want: []string{"a [1 2] 1999 [red]", "c [5 6] <nil> [blue]"},
			done: importer.Result{Items: 2, Skipped: 1, Duplicates: 1, Rows: 4}},
		{o: importer.Options{OnError: skip, OnDuplicate: importer.LastDuplicate},
			want: []string{"a [7 8] 2001 []", "c [5 6] <nil> [blue]"},
			done: importer.Result{Items: 2, Skipped: 1, Duplicates: 1, Rows: 4}},
		{o: importer.Options{OnError: skip, Mapping: importer.Mapping{Key: "id"}, From: 2},
			want: []string{"c [5 6] <nil> [blue]"},
			done: importer.Result{Items: 1, Skipped: 1, Rows: 4}},
		{o: importer.Options{From: -1}, fail: "From row -1"},
		{o: importer.Options{IgnoreUnknown: true, From: 5}, fail: "table.csv has 4 rows"},
	} {
		d, c := open(t, yearSchema)
		done, err := importer.Import(t.Context(), d, c, path, test.o)
		if test.fail != "" {
			if err == nil || !strings.Contains(err.Error(), test.fail) || stored(t, c) != nil {
				t.Errorf("%v, stored %q", err, stored(t, c))
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		got := stored(t, c)
		slices.Sort(got)
		done.Columns, done.Note = nil, ""
		if diff := cmp.Diff(test.want, got) + cmp.Diff(test.done, *done); diff != "" {
			t.Errorf("%+v: %s", test.done, diff)
		}
	}
}

// The key of a row that is left out is free for later rows, whether the file or the collection refuses the
// row.
func TestDuplicatesOfBadRows(t *testing.T) {
	long := strings.Repeat("l", 2000) // is no label
	rows := []string{"a,1," + long, "a,x,", "a,3,", "a,4,", "b,5,", "b,6," + long, "b,x,", "b,8,"}
	want := map[importer.Duplicates][]string{importer.FirstDuplicate: {"a 3", "b 5"},
		importer.LastDuplicate: {"a 4", "b 8"}}
	for policy, want := range want {
		path := write(t, "a.csv", "key,year,tags\n"+strings.Join(rows, "\n")+"\n")
		d, c := open(t, yearSchema)
		done, err := importer.Import(t.Context(), d, c, path, importer.Options{OnDuplicate: policy,
			OnError: func(int, error) error { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for it, err := range c.Items(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(it.Key, " ", it.Fields["year"]))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || done.Items != 2 ||
			done.Items+done.Skipped+done.Duplicates != len(rows) {
			t.Errorf("%v: %q, %+v", policy, got, done)
		}
	}
}

// An import that merges sets only what the rows have, and a mark is stored with the rows that it tells of.
func TestImportMerges(t *testing.T) {
	d, c := open(t, yearSchema)
	for _, file := range []string{"id,x,year\na,\"[1,2]\",1999\n", "id,tags\na,red\n"} {
		o := importer.Options{Merge: true, Mark: func(b api.Batch, rows int) error {
			return b.Mark("import", fmt.Append(nil, rows))
		}, Progress: func(done, of int) {
			if done != 0 || of != 1 {
				t.Errorf("%d of %d rows are done", done, of)
			}
		}}
		if _, err := importer.Import(t.Context(), d, c, write(t, "a.csv", file), o); err != nil {
			t.Fatal(err)
		}
	}
	mark, err := d.Mark(t.Context(), "import")
	if got := stored(t, c); !slices.Equal(got, []string{"a [1 2] 1999 [red]"}) || string(mark) != "1" ||
		err != nil {
		t.Errorf("%q, %q, %v", got, mark, err)
	}
	path := write(t, "b.csv", "tags\nred\n")
	_, err = importer.Import(t.Context(), d, c, path, importer.Options{Merge: true})
	if !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "Merge: ") {
		t.Errorf("a merge without keys: %v", err)
	}
}

// The kind of an error says whether the options or the file has to change. It names options as its reader
// knows them.
func TestErrors(t *testing.T) {
	path := write(t, "table.csv", table)
	o := importer.Options{Mapping: importer.Mapping{Key: "nom"}}
	if _, err := importer.Schema(path, o); !errors.Is(err, db.ErrInvalid) ||
		!strings.Contains(err.Error(), `Mapping.Key: `+path+` has no column "nom": there is "id", "x"`) {
		t.Error(err)
	}
	o.Words = &importer.Words{Key: "the box Key"}
	if _, err := importer.Schema(path, o); !strings.Contains(err.Error(), "the box Key: ") {
		t.Error(err)
	}
	if _, err := importer.Schema("table.xlsx", o); !errors.Is(err, db.ErrInvalid) {
		t.Error(err)
	}
	var none *importer.NoVectorsError
	var file *files.Error
	s, err := importer.Schema(write(t, "texts.csv", "id,title\na,A bag\n"), importer.Options{})
	want := []db.Field{{Name: "title", Type: db.String}}
	if !errors.As(err, &none) || !errors.As(err, &file) || !slices.Equal(s.Fields, want) {
		t.Errorf("%v, %v", s, err)
	}
}

// Every row of any file is stored, left out or a duplicate, and nothing panics.
func FuzzImport(f *testing.F) {
	for _, s := range []string{table, "0,1,2,3,4,5,6,7\n1,2,3,4,5,6,7,8\n", `{"key":"a","vectors":{"x":[1,2]}}`,
		`{"id":7,"x":[1,2],"tags":["b"]}` + "\n" + `{"id":7,"x":{"i":[1],"v":[2]}}`,
		"id,d1,d2,labels\n1,2,3,\"[0,1]\"\n"} {
		f.Add(s, "id", "d*")
	}
	f.Fuzz(func(t *testing.T, text, key, column string) {
		for _, o := range []importer.Options{{OnDuplicate: importer.FirstDuplicate},
			{Mapping: importer.Mapping{Key: key, Labels: []string{column},
				Vectors: []importer.Mapped{{Column: column}}}}} {
			o.OnError = func(int, error) error { return nil }
			for _, name := range []string{"a.csv", "a.jsonl"} {
				path := write(t, name, text)
				s, err := importer.Schema(path, o)
				if err != nil || len(s.Modalities)+len(s.Fields) > 50 {
					continue
				}
				memory, err := db.OpenMemory(nil)
				if err != nil {
					t.Fatal(err)
				}
				d := api.Folder(memory, nil)
				if c, err := d.CreateCollection(t.Context(), "main", s); err == nil {
					done, err := importer.Import(t.Context(), d, c, path, o)
					if err == nil && (done.Items+done.Skipped+done.Duplicates != done.Rows ||
						len(stored(t, c)) != done.Items) {
						t.Errorf("%+v, %d items", done, len(stored(t, c)))
					}
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
