package command

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// zeros makes a .npy of zeros that takes no room on the disk.
func zeros(t *testing.T, path string, rows, cols int) {
	t.Helper()
	dict := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, cols)
	dict += strings.Repeat(" ", 63-(10+len(dict))%64) + "\n"
	writeFile(t, path, "\x93NUMPY\x01\x00"+string([]byte{byte(len(dict)), byte(len(dict) >> 8)})+dict)
	if err := os.Truncate(path, int64(10+len(dict)+4*rows*cols)); err != nil {
		t.Fatal(err)
	}
}

// What no commit can hold is refused before it is read.
func TestImportTooLarge(t *testing.T) {
	f := fixture{dir: t.TempDir()}
	zeros(t, f.path("big.npy"), 1_200_000, 1000)
	code, _, stderr := do(t, "import", f.path("a.db"), "--init", "--vectors", "image="+f.path("big.npy"))
	if code != exitFailed || !strings.Contains(stderr, "1,200,000 rows take 4.8 GB, more than one commit can hold (4.3 GB)") ||
		!strings.Contains(stderr, "--on-error skip") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	if _, err := os.Stat(f.path("a.db")); !os.IsNotExist(err) {
		t.Errorf("a.db: %v", err)
	}
}

// --on-error skip commits in parts.
func TestImportParts(t *testing.T) {
	f := fixture{dir: t.TempDir(), db: ""}
	f.db = f.path("a.db")
	const rows = 40
	zeros(t, f.path("wide.npy"), rows, db.MaxDim/2)
	writeFile(t, f.path("ids.txt"), strings.Repeat("same\n", 2)+strings.Join(strings.Split(strings.Repeat("x", rows-2), ""), "\n")+"\n")
	code, stdout, stderr := do(t, "import", f.db, "--init", "--vectors", "image="+f.path("wide.npy"), "--on-error", "skip", "--json")
	if code != 0 || !strings.Contains(stdout, `"items":40,"skipped":0,`) {
		t.Fatalf("exit code %d, %q, %q", code, stdout, stderr)
	}
	var s db.Stats
	mustJSON(t, &s, "stats", f.db)
	if s.Items != rows || s.Sequence < 3 { // the collection, and two parts at least
		t.Errorf("%d items in %d commits", s.Items, s.Sequence)
	}
	// Of many reasons the first few are shown.
	_, _, stderr = do(t, "import", f.db, "--vectors", "image="+f.path("wide.npy"), "--ids", f.path("ids.txt"), "--on-error", "skip", "--dry-run")
	if got := strings.Count(stderr, "fddhdb: skipped: "); got != shownReasons+1 || !strings.Contains(stderr, "skipped: 33 more") {
		t.Errorf("%d reasons: %s", got, stderr)
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
