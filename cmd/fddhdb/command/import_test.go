package command

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/rows"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// zeros makes a .npy of zeros that takes no space on disk.
func zeros(t *testing.T, path string, rows, cols int) {
	t.Helper()
	dict := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, cols)
	dict += strings.Repeat(" ", 63-(10+len(dict))%64) + "\n"
	clitest.WriteFile(t, path, "\x93NUMPY\x01\x00"+string([]byte{byte(len(dict)), byte(len(dict) >> 8)})+dict)
	clitest.Check(t, os.Truncate(path, int64(10+len(dict)+4*rows*cols)))
}

// A few large items are stored in parts, also with --on-error skip.
func TestImportOfLargeItems(t *testing.T) {
	effort.Slow(t)
	f := empty(t)
	const rows = 40
	zeros(t, f.path("wide.npy"), rows, db.MaxDim/2)
	clitest.WriteFile(t, f.path("ids.txt"), strings.Repeat("same\n", 2)+strings.Join(
		strings.Split(strings.Repeat("x", rows-2), ""), "\n")+"\n")
	code, stdout, stderr := do(t, "import", f.db, "--init", "--vectors", "image="+f.path("wide.npy"),
		"--on-error", "skip", "--json")
	if code != 0 || !strings.Contains(stdout, `"items":40,"skipped":0,`) {
		t.Fatalf("exit code %d, %q, %q", code, stdout, stderr)
	}
	var s db.Stats
	mustJSON(t, &s, "stats", f.db)
	if s.Items != rows || s.Sequence != 8 { // the collection, its mark, five parts, and the mark goes
		t.Errorf("%d items in %d commits", s.Items, s.Sequence)
	}
	// Rows that are left out for the same reason are one line.
	_, _, stderr = do(t, "import", f.db, "--vectors", "image="+f.path("wide.npy"), "--keys",
		f.path("ids.txt"), "--on-error", "skip", "--dry-run")
	if got := strings.Count(stderr, "fddhdb: skipped: "); got != 1 ||
		!strings.Contains(stderr, "takes one of them); and 37 like it: row 3, 4, 5, 6, ...") {
		t.Errorf("%d reasons: %s", got, stderr)
	}
}

// An error of the database names the files and the row.
func TestImportNamesTheRow(t *testing.T) {
	f := newFixture(t, 5, false)
	clitest.WriteFile(t, f.labels, "a\nb\nc\n"+strings.Repeat("l", db.MaxLabelBytes+1)+"\ne\n")
	where := f.image + ", " + f.labels + ": row 3: "
	args := []string{"import", f.db, "--vectors", "image=" + f.image, "--labels", f.labels}
	says(t, exit.Failed, "fddhdb: "+where, args...)
	says(t, exit.Done, where, append(args, "--on-error", "skip")...)
}

// many writes a .npy of so many distinct vectors of 2 numbers. The rows in bad hold a
// NaN.
func many(t *testing.T, path string, rows int, bad ...int) {
	t.Helper()
	zeros(t, path, rows, 2)
	b := clitest.Must(os.ReadFile(path))(t)
	data := b[len(b)-8*rows:]
	for i := range rows {
		binary.LittleEndian.PutUint32(data[8*i:], math.Float32bits(float32(i)))
	}
	for _, i := range bad {
		binary.LittleEndian.PutUint32(data[8*i:], math.Float32bits(float32(math.NaN())))
	}
	clitest.Check(t, os.WriteFile(path, b, 0o644))
}

// idFor returns what identifies an import with these arguments.
func idFor(t *testing.T, args ...string) importID {
	t.Helper()
	v := (&env{Printer: term.NewPrinter(io.Discard, io.Discard)}).verb("", "import DIR", "", "",
		"").onCollection()
	o := newImporting(v)
	v.f.Var(&o.vectors, "vectors", "")
	v.f.StringVar(&o.names.Keys, "keys", "", "")
	v.f.Bool("init", false, "")
	v.f.String("mode", "", "")
	v.f.Int("from-row", 0, "")
	v.f.Var(flags.OnError{Skip: &o.skip}, "on-error", "")
	clitest.Check(t, errors.Join(v.cmd.ParseFlags(args), o.open()))
	defer o.Close()
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
	f := fixture{dir: t.TempDir()}
	npy, file := f.path("x.npy"), f.path("x.npz")
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

// countOf returns the number of items.
func countOf(t *testing.T, dir string) string { return strings.TrimSpace(must(t, "count", dir)) }

// An interrupted import goes on when the same command runs again, says so, and stores each row once.
// It begins again with other files.
func TestImportGoesOn(t *testing.T) {
	f := fixture{dir: t.TempDir()}
	dir, file, other := f.path("a.db"), f.path("x.npy"), f.path("y.npy")
	many(t, file, 50, 3, 5, 40)
	many(t, other, 50)
	must(t, "init", dir, "--modality", "image:2")
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
	if n := countOf(t, dir); n != "97" {
		t.Errorf("%s items", n)
	}
	// It has ended: another one begins at row 0, and no mark is left.
	if code, _, stderr := do(t, args...); code != 0 || strings.Contains(stderr, "going on") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	checkNoMark(t, dir)
}

// checkNoMark checks that no import has left a mark.
func checkNoMark(t *testing.T, dir string) {
	t.Helper()
	d := clitest.Must(db.Open(dir, nil))(t)
	defer d.Close()
	for m, err := range d.Marks(context.Background(), "") {
		t.Errorf("mark %q is %q, %v", m.Name, m.Value, err)
	}
}

// An import whose files have changed since it was interrupted needs --from-row; so does one of standard
// input.
func TestImportFromRow(t *testing.T) {
	f := fixture{dir: t.TempDir()}
	dir, file := f.path("a.db"), f.path("x.npy")
	many(t, file, 50)
	must(t, "init", dir, "--modality", "image:2")
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
	if n := countOf(t, dir); n != "60" {
		t.Errorf("%s items", n)
	}
	checkNoMark(t, dir)
	must(t, append(args, "--from-row", "0")...)
	if n := countOf(t, dir); n != "120" {
		t.Errorf("%s items", n)
	}
}

// An import into a collection that was dropped begins at row 0 in one of the same name.
func TestImportIntoACollectionThatWasDropped(t *testing.T) {
	f := fixture{dir: t.TempDir()}
	dir, file := f.path("a.db"), f.path("x.npy")
	many(t, file, 50)
	must(t, "init", dir, "--modality", "image:2")
	args := []string{"import", dir, "--vectors", "image=" + file}
	interrupt(t, dir, idFor(t, args[2:]...), 20)
	must(t, "drop", dir, "--collection", "main")
	must(t, "init", dir, "--modality", "image:2")
	must(t, args...)
	if n := countOf(t, dir); n != "50" {
		t.Errorf("%s items", n)
	}
}

// A bad row of a later part leaves the parts before it in, and the error says so and how to go on.
func TestBadRowOfALaterPart(t *testing.T) {
	effort.Slow(t)
	f := fixture{dir: t.TempDir()}
	dir, file := f.path("a.db"), f.path("x.npy")
	const rows, dim, bad = 70, 1 << 19, 47 // 2 MiB a row: five parts of 8, and then larger ones
	zeros(t, file, rows, dim)
	out := clitest.Must(os.OpenFile(file, os.O_RDWR, 0))(t)
	info, err := out.Stat()
	if err == nil {
		_, err = out.WriteAt(binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN()))),
			info.Size()-4*dim*(rows-bad))
	}
	clitest.Check(t, errors.Join(err, out.Close()))
	args := []string{"import", dir, "--init", "--vectors", "image=" + file}
	code, _, stderr := do(t, args...)
	if code != 1 || !strings.Contains(stderr, "row 47, column 0: NaN") ||
		!strings.Contains(stderr, "; 40 of 70 rows are in: --on-error skip leaves such rows out and goes on; with a file that you have corrected, --from-row 40 goes on") {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	if n := countOf(t, dir); n != "40" {
		t.Errorf("%s items", n)
	}
	says(t, exit.Done, "going on at row 40 of 70", append(args, "--on-error", "skip")...)
	if n := countOf(t, dir); n != "69" {
		t.Errorf("%s items", n)
	}
	checkNoMark(t, dir)
}

// --init goes on with the collection that the interrupted command has created, whether or not it has
// stored anything.
func TestImportInitGoesOn(t *testing.T) {
	for _, rows := range []int{0, 20} {
		f := fixture{dir: t.TempDir()}
		dir, file := f.path("a.db"), f.path("x.npy")
		many(t, file, 50)
		must(t, "init", dir, "--modality", "image:2")
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
