package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
)

type verified struct {
	OK       bool         `json:"ok"`
	Findings []db.Finding `json:"findings"`
	Items    int          `json:"items"`
	Records  int          `json:"records"`
	Checked  int          `json:"codes_checked"`
}

func TestVerify(t *testing.T) {
	f := newFixture(t, 60, true)
	if got := must(t, "verify", f.db); !strings.HasPrefix(got, "OK: 60 items, ") {
		t.Errorf("%q", got)
	}
	if got := must(t, "verify", f.db, "--deep"); !strings.HasSuffix(got, " records; the codes of 60 items made again\n") {
		t.Errorf("%q", got)
	}
	var v verified
	mustJSON(t, &v, "verify", f.db, "--deep", "--json")
	if !v.OK || v.Findings == nil || len(v.Findings) > 0 || v.Items != 60 || v.Checked != 60 || v.Records < 60 {
		t.Errorf("%+v", v)
	}
	if code, _, stderr := do(t, "verify", f.dir); code != exit.Usage || !strings.Contains(stderr, "not a database") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}

// A damaged table is found, even if the database cannot be opened any more.
func TestVerifyDamage(t *testing.T) {
	clitest.OneGoroutine(t)
	f := newFixture(t, 60, true)
	must(t, "compact", f.db)
	tables, err := filepath.Glob(filepath.Join(f.db, "store", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	for _, table := range tables {
		b, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for i := range min(2000, len(b)/2) {
			b[i] ^= 0x55
		}
		if err := os.WriteFile(table, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, stderr := do(t, "verify", f.db)
	if code != exit.Corrupt || !strings.Contains(stdout, "cannot be read") || !strings.Contains(stderr, "finding") {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
	if code, stdout, _ := do(t, "verify", f.db, "--json"); code != exit.Corrupt || !strings.HasPrefix(stdout, `{"findings":[{"`) || !strings.Contains(stdout, `],"ok":false,`) {
		t.Errorf("exit code %d, %q", code, stdout)
	}
}
