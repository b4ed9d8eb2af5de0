package ingest

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/internal/rows"
)

// do imports by a command line and returns its code and output.
func do(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	e := &run.Env{Printer: term.NewPrinter(&out, &errs), Stdin: strings.NewReader("")}
	root := &cobra.Command{Use: "fddhdb", SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return e.BeginOutput(cmd, term.ModeTable)
		}}
	root.AddGroup(&cobra.Group{ID: run.GroupItems})
	root.AddCommand(ImportCommand(e))
	err := e.Execute(t.Context(), root, args)
	if err != nil {
		e.PrintError(err)
	}
	return exit.Code(err), out.String(), errs.String()
}

// says runs a command line that has to end with a code, and to say something on stderr.
func says(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	if got, _, stderr := do(t, args...); got != code || !strings.Contains(stderr, want) {
		t.Errorf("fddhdb %s: exit code %d, stderr %q, want %q", strings.Join(args, " "), got, stderr, want)
	}
}

// newDatabase creates a database of vectors of 2 numbers, and names a file beside it.
func newDatabase(t *testing.T) (dir, file string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "a.db")
	create(t, dir)
	return dir, filepath.Join(filepath.Dir(dir), "x.npy")
}

func create(t *testing.T, dir string) {
	t.Helper()
	d := clitest.Must(db.Open(dir, nil))(t)
	_, err := d.CreateCollection(t.Context(), "main",
		db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 2}}})
	clitest.Check(t, errors.Join(err, d.Close()))
}

// countOf returns the number of items.
func countOf(t *testing.T, dir string) int {
	t.Helper()
	d := clitest.Must(db.Open(dir, &db.Options{ReadOnly: true}))(t)
	n, err := clitest.Must(d.Collection("main"))(t).Count(t.Context(), "")
	clitest.Check(t, errors.Join(err, d.Close()))
	return n
}

// checkNoMark checks that no import has left a mark.
func checkNoMark(t *testing.T, dir string) {
	t.Helper()
	d := clitest.Must(db.Open(dir, nil))(t)
	defer d.Close()
	for m, err := range d.Marks(t.Context(), "") {
		t.Errorf("mark %q is %q, %v", m.Name, m.Value, err)
	}
}

// many writes a .npy of so many distinct vectors of 2 numbers. The rows in bad hold a
// NaN.
func many(t *testing.T, path string, rows int, bad ...int) {
	t.Helper()
	vectors := make([][]float32, rows)
	for i := range vectors {
		vectors[i] = []float32{float32(i), 0}
	}
	for _, i := range bad {
		vectors[i][0] = float32(math.NaN())
	}
	clitest.WriteNPY(t, path, vectors)
}

// idFor returns what identifies an import with these arguments.
func idFor(t *testing.T, args ...string) importID {
	t.Helper()
	v := (&run.Env{Printer: term.NewPrinter(io.Discard, io.Discard)}).NewVerb("", "import DIR", "", "",
		"").OnCollection()
	o := newImporting(v)
	v.Flags.Var(&o.vectors, "vectors", "")
	v.Flags.StringVar(&o.names.Keys, "keys", "", "")
	v.Flags.Bool("init", false, "")
	v.Flags.String("mode", "", "")
	v.Flags.Int("from-row", 0, "")
	v.Flags.Var(flags.OnError{Skip: &o.skip}, "on-error", "")
	clitest.Check(t, errors.Join(v.Cmd.ParseFlags(args), o.open()))
	defer o.Files.Close()
	return o.id
}

// interrupt leaves an import of the first n rows of many in the state of one that was interrupted.
func interrupt(t *testing.T, dir string, id importID, n int, skipped ...int) {
	t.Helper()
	d := api.Folder(clitest.Must(db.Open(dir, nil))(t), nil)
	c := clitest.Must(d.Collection(t.Context(), "main"))(t)
	o, b := importing{id: id}, d.NewBatch()
	for i := range n {
		if slices.Contains(skipped, i) {
			o.skipped.Add(i, fmt.Sprintf("x.npy: row %d, column 0: NaN", i))
			continue
		}
		clitest.Check(t, b.Put(c, &db.Item{Vectors: map[string][]float32{"image": {float32(i), 0}}}))
	}
	clitest.Check(t, o.putMark(b, c, rows.Done{Rows: n, Items: n - len(skipped)}))
	clitest.Check(t, errors.Join(b.Commit(t.Context()), d.Close()))
}

// An import of one member of an archive does not go on where one of another was.
func TestImportIDHasTheMember(t *testing.T) {
	dir := t.TempDir()
	npy, file := filepath.Join(dir, "x.npy"), filepath.Join(dir, "x.npz")
	many(t, npy, 3)
	b := clitest.Must(os.ReadFile(npy))(t)
	out, err := os.Create(file)
	clitest.Check(t, err)
	archive := zip.NewWriter(out)
	for _, name := range []string{"a.npy", "b.npy"} {
		var w io.Writer
		if w, err = archive.Create(name); err == nil {
			_, err = w.Write(b)
		}
		clitest.Check(t, err)
	}
	clitest.Check(t, errors.Join(archive.Close(), out.Close()))
	one, other := idFor(t, "--vectors", "image="+file+":a"), idFor(t, "--vectors", "image="+file+":b")
	if one.command == "" || one.command == other.command {
		t.Errorf("the import is %v whichever it is", one)
	}
	if again := idFor(t, "--vectors", "image="+file+":a", "--mode", "json", "--from-row", "3", "--on-error",
		"skip"); again != one {
		t.Errorf("the import is %v, or %v where it is printed otherwise", one, again)
	}
}

// An interrupted import goes on when the same command runs again, says so, and stores each row once.
// It begins again with other files.
func TestImportGoesOn(t *testing.T) {
	dir, file := newDatabase(t)
	other := filepath.Join(t.TempDir(), "y.npy")
	many(t, file, 50, 3, 5, 40)
	many(t, other, 50)
	args := []string{"import", dir, "--vectors", "image=" + file, "--on-error", "skip"}
	interrupt(t, dir, idFor(t, args[2:]...), 20, 3, 5)
	if code, _, stderr := do(t, "import", dir, "--vectors", "image="+other); code != 0 ||
		strings.Contains(stderr, "going on") {
		t.Fatalf("another file: exit code %d, %s", code, stderr)
	}
	code, stdout, stderr := do(t, append(args, "--json")...)
	for _, want := range []string{`"items":47,"skipped":3,`, `"resumed_at":20`,
		`"skipped_reasons":[{"reason":"x.npy: row 3, column 0: NaN","count":2,"rows":[3,5]}`,
		`"rows":[40]}`} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, %s is missing in %s", code, want, stdout)
		}
	}
	for _, want := range []string{"going on at row 20 of 50, ",
		"skipped: x.npy: row 3, column 0: NaN; and 1 like it: row 5\n"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is missing in %s", want, stderr)
		}
	}
	if n := countOf(t, dir); n != 97 {
		t.Errorf("%d items", n)
	}
	// It has ended: another one begins at row 0, and no mark is left.
	if code, _, stderr := do(t, args...); code != 0 || strings.Contains(stderr, "going on") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	checkNoMark(t, dir)
}

// An import whose files have changed since it was interrupted needs --from-row; so does one of standard
// input.
func TestImportFromRow(t *testing.T) {
	dir, file := newDatabase(t)
	many(t, file, 50)
	args := []string{"import", dir, "--vectors", "image=" + file}
	interrupt(t, dir, idFor(t, args[2:]...), 20)
	many(t, file, 60)
	says(t, exit.Failed,
		"changed since this import was interrupted, when 20 of 60 rows are in: --from-row 20 goes on there, --from-row 0 begins again",
		args...)
	says(t, exit.Usage, "--from-row 61: the files have 60 rows", append(args, "--from-row", "61")...)
	if code, stdout, stderr := do(t, append(args, "--from-row", "20", "--json")...); code != 0 ||
		!strings.Contains(stdout, `"items":40,`) {
		t.Errorf("exit code %d, %s, %s", code, stdout, stderr)
	}
	if n := countOf(t, dir); n != 60 {
		t.Errorf("%d items", n)
	}
	checkNoMark(t, dir)
	says(t, exit.Done, "", append(args, "--from-row", "0")...)
	if n := countOf(t, dir); n != 120 {
		t.Errorf("%d items", n)
	}
}

// An import into a collection that was dropped begins at row 0 in one of the same name.
func TestImportIntoACollectionThatWasDropped(t *testing.T) {
	dir, file := newDatabase(t)
	many(t, file, 50)
	args := []string{"import", dir, "--vectors", "image=" + file}
	interrupt(t, dir, idFor(t, args[2:]...), 20)
	d := clitest.Must(db.Open(dir, nil))(t)
	err := d.DropCollection(t.Context(), "main")
	clitest.Check(t, errors.Join(err, d.Close()))
	create(t, dir)
	says(t, exit.Done, "", args...)
	if n := countOf(t, dir); n != 50 {
		t.Errorf("%d items", n)
	}
}

// --init goes on with the collection that the interrupted command has created, whether or not it has
// stored anything.
func TestImportInitGoesOn(t *testing.T) {
	for _, rows := range []int{0, 20} {
		dir, file := newDatabase(t)
		many(t, file, 50)
		args := []string{"import", dir, "--init", "--vectors", "image=" + file}
		interrupt(t, dir, idFor(t, args[3:]...), rows)
		code, stdout, stderr := do(t, append(args, "--json")...)
		if code != 0 || !strings.Contains(stdout, `"items":50,`) ||
			strings.Contains(stderr, "going on") != (rows > 0) {
			t.Fatalf("exit code %d, %s, %s", code, stdout, stderr)
		}
		// It is complete now: the collection exists.
		if code, _, stderr := do(t, args...); code != 1 || !strings.Contains(stderr, "exists already") {
			t.Fatalf("exit code %d, %s", code, stderr)
		}
		checkNoMark(t, dir)
	}
}
