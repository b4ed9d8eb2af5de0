package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db/report"
)

// A second compaction does not seem to grow by files that are about to be deleted.
func TestCompactAgain(t *testing.T) {
	f := newFixture(t, 1000, false)
	var first, again struct {
		BytesBefore int64 `json:"bytes_before"`
		BytesAfter  int64 `json:"bytes_after"`
	}
	mustJSON(t, &first, "compact", f.db)
	mustJSON(t, &again, "compact", f.db)
	if again.BytesBefore <= 0 || again.BytesAfter <= 0 || again.BytesAfter > again.BytesBefore*3/2 ||
		again.BytesAfter > first.BytesAfter*3/2 {
		t.Errorf("%+v, then %+v", first, again)
	}
}

type repaired struct {
	OK       bool             `json:"ok"`
	Findings []report.Finding `json:"findings"`
	Items    int              `json:"items"`
	Damaged  string           `json:"damaged"`
}

// A sound database is not changed. One without its manifest is repaired, and finds the
// same as before.
func TestRepair(t *testing.T) {
	f := newFixture(t, 60, true)
	if got := must(t, "repair", f.db); got != "OK: nothing to repair, 60 items\n" {
		t.Errorf("%q", got)
	}
	var r repaired
	mustJSON(t, &r, "repair", f.db, "--json")
	if !r.OK || r.Findings == nil || len(r.Findings) > 0 || r.Items != 60 || r.Damaged != "" {
		t.Errorf("%+v", r)
	}
	for _, flag := range []string{"--deep", "--deep=false"} {
		if got := must(t, "repair", f.db, flag); got != "OK: nothing to repair, 60 items\n" {
			t.Errorf("%s: %q", flag, got)
		}
	}
	before := must(t, "export", f.db, "--items", filepath.Join(f.dir, "before.jsonl"))
	manifests, err := filepath.Glob(filepath.Join(f.db, "store", "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatal(manifests, err)
	}
	for _, name := range manifests {
		clitest.Check(t, os.Remove(name))
	}
	code, stdout, stderr := do(t, "repair", f.db, "--dry-run")
	if code != exit.Corrupt || !strings.Contains(stdout, "may come back") ||
		!strings.Contains(stdout, "it can be repaired, with 60 items") ||
		!strings.Contains(stderr, "1 finding: something could not be saved") {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
	if code, _, _ := do(t, "count", f.db); code == 0 {
		t.Error("it opens, though nothing was repaired")
	}
	code, stdout, stderr = do(t, "repair", f.db)
	if code != exit.Corrupt ||
		!strings.Contains(stdout, "repaired: 60 items; the damaged store is now "+filepath.Join(f.db,
			"damaged-")) {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
	if got := must(t, "repair", f.db); got != "OK: nothing to repair, 60 items\n" {
		t.Errorf("%q", got)
	}
	after := must(t, "export", f.db, "--items", filepath.Join(f.dir, "after.jsonl"))
	a, aerr := os.ReadFile(filepath.Join(f.dir, "before.jsonl"))
	b, berr := os.ReadFile(filepath.Join(f.dir, "after.jsonl"))
	if aerr != nil || berr != nil || string(a) != string(b) || before == "" || after == "" {
		t.Errorf("items differ: %v, %v", aerr, berr)
	}
	says(t, exit.Usage, "not a database", "repair", f.dir)
}
