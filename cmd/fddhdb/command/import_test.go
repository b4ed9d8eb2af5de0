package command

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
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

// countOf returns the number of items.
func countOf(t *testing.T, dir string) string { return strings.TrimSpace(must(t, "count", dir)) }

// checkNoMark checks that no import has left a mark.
func checkNoMark(t *testing.T, dir string) {
	t.Helper()
	d := clitest.Must(db.Open(dir, nil))(t)
	defer d.Close()
	for m, err := range d.Marks(context.Background(), "") {
		t.Errorf("mark %q is %q, %v", m.Name, m.Value, err)
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
