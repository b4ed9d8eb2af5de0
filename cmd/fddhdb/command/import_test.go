package command

import (
	"fmt"
	"os"
	"strings"
	"testing"

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
	if err := os.Truncate(path, int64(10+len(dict)+4*rows*cols)); err != nil {
		t.Fatal(err)
	}
}

// A few large items are stored in parts, also with --on-error skip.
func TestImportOfLargeItems(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	f := fixture{dir: t.TempDir(), db: ""}
	f.db = f.path("a.db")
	const rows = 40
	zeros(t, f.path("wide.npy"), rows, db.MaxDim/2)
	clitest.WriteFile(t, f.path("ids.txt"), strings.Repeat("same\n", 2)+strings.Join(strings.Split(strings.Repeat("x", rows-2), ""), "\n")+"\n")
	code, stdout, stderr := do(t, "import", f.db, "--init", "--vectors", "image="+f.path("wide.npy"), "--on-error", "skip", "--json")
	if code != 0 || !strings.Contains(stdout, `"items":40,"skipped":0,`) {
		t.Fatalf("exit code %d, %q, %q", code, stdout, stderr)
	}
	var s db.Stats
	mustJSON(t, &s, "stats", f.db)
	if s.Items != rows || s.Sequence != 8 { // the collection, its mark, five parts, and the mark goes
		t.Errorf("%d items in %d commits", s.Items, s.Sequence)
	}
	// Rows that are left out for the same reason are one line.
	_, _, stderr = do(t, "import", f.db, "--vectors", "image="+f.path("wide.npy"), "--keys", f.path("ids.txt"), "--on-error", "skip", "--dry-run")
	if got := strings.Count(stderr, "fddhdb: skipped: "); got != 1 || !strings.Contains(stderr, `the key "same" stands on line 1 and on line 2; and 37 like it: row 3, 4, 5, 6, ...`) {
		t.Errorf("%d reasons: %s", got, stderr)
	}
}

// An error of the database names the files and the row.
func TestImportNamesTheRow(t *testing.T) {
	f := newFixture(t, 5, false)
	clitest.WriteFile(t, f.labels, "a\nb\nc\n"+strings.Repeat("l", db.MaxLabelBytes+1)+"\ne\n")
	where := f.image + ", " + f.labels + ": row 3: "
	code, _, stderr := do(t, "import", f.db, "--vectors", "image="+f.image, "--labels", f.labels)
	if code != exit.Failed || !strings.HasPrefix(stderr, "fddhdb: "+where) {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	code, _, stderr = do(t, "import", f.db, "--vectors", "image="+f.image, "--labels", f.labels, "--on-error", "skip")
	if code != 0 || !strings.Contains(stderr, where) {
		t.Errorf("skipped: exit code %d, %q", code, stderr)
	}
}

// An import of nothing but labels makes items that have only those.
func TestImportLabelsOnly(t *testing.T) {
	f := newFixture(t, 20, false)
	must(t, "import", f.db, "--labels", f.labels)
	if got := must(t, "count", f.db); got != "40\n" {
		t.Errorf("count %q", got)
	}
}
