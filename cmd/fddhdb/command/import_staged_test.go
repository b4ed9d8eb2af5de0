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
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// many writes a .npy of so many distinct vectors of 2 numbers. The rows in bad hold a
// NaN.
func many(t *testing.T, path string, rows int, bad ...int) {
	t.Helper()
	zeros(t, path, rows, 2)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data := b[len(b)-8*rows:]
	for i := range rows {
		binary.LittleEndian.PutUint32(data[8*i:], math.Float32bits(float32(i)))
	}
	for _, i := range bad {
		binary.LittleEndian.PutUint32(data[8*i:], math.Float32bits(float32(math.NaN())))
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// sourceFor returns the source of an import with these arguments.
func sourceFor(t *testing.T, args ...string) string {
	t.Helper()
	e := &env{Printer: term.NewPrinter(io.Discard, io.Discard)}
	cmd, _, err := rootCommand(e).Find([]string{"import"})
	if err == nil {
		err = cmd.ParseFlags(args)
	}
	if err != nil {
		t.Fatal(err)
	}
	o := importOptions{vectors: flags.NamedList{Kind: "NAME=FILE"}}
	for _, a := range args {
		if name, file, ok := strings.Cut(a, "="); ok && name == "image" {
			o.vectors.List = append(o.vectors.List, flags.Named{Name: name, Value: file})
		}
	}
	in, err := source.OpenFiles(o.files())
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	return sourceOf(cmd, in, &o)
}

// stage leaves an import in the state of one that was interrupted after some rows.
func stage(t *testing.T, dir, source string, rows int, skipped map[int]bool) {
	t.Helper()
	d, err := db.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Collection("main")
	if err != nil {
		t.Fatal(err)
	}
	im, err := c.NewImport(context.Background(), db.ImportOptions{Source: source})
	for i := 0; err == nil && i < rows; i++ {
		if skipped[i] {
			err = im.Skip(fmt.Sprintf("x.npy: row %d, column 0: NaN", i))
			continue
		}
		err = im.Put(&db.Item{Vectors: map[string][]float32{"image": {float32(i), 0}}})
	}
	if err == nil {
		err = im.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// An import of one member of an archive does not go on with the staged items of
// another.
func TestImportSourceHasTheMember(t *testing.T) {
	f := fixture{dir: t.TempDir()}
	npy, file := f.path("x.npy"), f.path("x.npz")
	many(t, npy, 3)
	b, err := os.ReadFile(npy)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	archive := zip.NewWriter(out)
	for _, name := range []string{"a.npy", "b.npy"} {
		var w io.Writer
		if w, err = archive.Create(name); err == nil {
			_, err = w.Write(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	one, other := sourceFor(t, "--vectors", "image="+file+":a"), sourceFor(t, "--vectors", "image="+file+":b")
	if one == "" || one == other {
		t.Errorf("the source is %q whichever it is", one)
	}
	if again := sourceFor(t, "--vectors", "image="+file+":a", "--mode", "json", "--restart"); again != one {
		t.Errorf("the source is %q, or %q where it is printed otherwise", one, again)
	}
}

// An interrupted import goes on when the same command runs again. It begins anew if the
// files, or flags that matter, differ.
func TestImportGoesOn(t *testing.T) {
	const rows = stagedRows + 10
	f := fixture{dir: t.TempDir()}
	dir, file, other := f.path("a.db"), f.path("x.npy"), f.path("y.npy")
	many(t, file, rows, 3, 5, 9000-1000)
	many(t, other, rows)
	must(t, "init", dir, "--modality", "image:2")
	args := []string{"--vectors", "image=" + file, "--on-error", "skip"}
	source := sourceFor(t, args...)
	if source == "" || source == sourceFor(t, args[:2]...) || source == sourceFor(t, "--vectors", "image="+other, "--on-error", "skip") {
		t.Fatalf("source %q", source)
	}
	skipped := map[int]bool{3: true, 5: true}
	run := func(args ...string) (stdout, stderr string) {
		code, stdout, stderr := do(t, append([]string{"import", dir}, args...)...)
		if code != 0 {
			t.Fatalf("exit code %d, %q", code, stderr)
		}
		return stdout, stderr
	}
	stage(t, dir, source, 4000, skipped)
	if out := must(t, "stats", dir); !strings.Contains(out, `an interrupted import into collection "main" has staged`) {
		t.Errorf("stats: %s", out)
	}
	stdout, stderr := run(append(args, "--json")...)
	for _, want := range []string{`"items":8199,"skipped":3,`, `"resumed_at":4000`, `"skipped_reasons":[{"reason":"x.npy: row 3, column 0: NaN","count":2,"rows":[3,5]}`} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%s is missing in %s", want, stdout)
		}
	}
	for _, want := range []string{"going on at row 4,000 of 8,202, ", "skipped: x.npy: row 3, column 0: NaN; and 1 like it: row 5"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is missing in %s", want, stderr)
		}
	}
	got := strings.Split(strings.TrimSpace(must(t, "scan", dir, "--json")), "\n")
	if len(got) != rows-3 || !strings.Contains(got[3], `"image":[4,0]`) || !strings.Contains(got[rows-4], fmt.Sprintf(`"image":[%d,0]`, rows-1)) {
		t.Errorf("%d items, %s, %s", len(got), got[3], got[len(got)-1])
	}

	// --restart, and another command, begin at row 0.
	stage(t, dir, source, 4000, skipped)
	if _, stderr := run(append(args, "--restart")...); strings.Contains(stderr, "going on") {
		t.Error(stderr)
	}
	stage(t, dir, source, 4000, skipped)
	if _, stderr := run("--vectors", "image="+other); strings.Contains(stderr, "going on") {
		t.Error(stderr)
	}
	if _, stderr, code := second3(do(t, "compact", dir)); code != 0 || !strings.Contains(stderr, `that an interrupted import into collection "main" had staged`) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if out := must(t, "stats", dir); strings.Contains(out, "interrupted") {
		t.Errorf("stats: %s", out)
	}

	// A bad row discards all staged items.
	code, _, stderr := do(t, "import", dir, "--vectors", "image="+file)
	if code != 1 || !strings.Contains(stderr, "nothing was stored") || strings.Contains(must(t, "stats", dir), "interrupted") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if n := must(t, "count", dir); n != fmt.Sprintln(2*(rows-3)+rows) {
		t.Errorf("%s items", n)
	}
}

func second3(code int, stdout, stderr string) (string, string, int) { return stdout, stderr, code }

// --init goes on with the collection that the interrupted command has created.
func TestImportInitGoesOn(t *testing.T) {
	const rows = stagedRows + 10
	f := fixture{dir: t.TempDir()}
	dir, file := f.path("a.db"), f.path("x.npy")
	many(t, file, rows)
	must(t, "init", dir, "--modality", "image:2")
	stage(t, dir, sourceFor(t, "--vectors", "image="+file), 5000, nil)
	code, stdout, stderr := do(t, "import", dir, "--init", "--vectors", "image="+file, "--json")
	if code != 0 || !strings.Contains(stdout, `"items":8202,`) || !strings.Contains(stderr, "going on at row 5,000 of 8,202") {
		t.Fatalf("exit code %d, %s, %s", code, stdout, stderr)
	}
	// It is complete now: the collection exists.
	if code, _, stderr := do(t, "import", dir, "--init", "--vectors", "image="+file); code != 1 || !strings.Contains(stderr, "exists already") {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
}
