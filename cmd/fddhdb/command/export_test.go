package command

import (
	"os"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
)

// A key that does not fit on a line is not written as two lines.
func TestExportKeys(t *testing.T) {
	f := newFixture(t, 10, false)
	must(t, "put", f.db, "two\nlines", "--labels", "")
	says(t, exit.Failed, `--keys: the key "two\nlines" does not fit on a line: use --items`, "export", f.db,
		"--keys", f.path("ids.txt"))
	if _, err := os.Stat(f.path("ids.txt")); !os.IsNotExist(err) {
		t.Errorf("ids.txt: %v", err)
	}
	must(t, "export", f.db, "--items", f.path("items.jsonl"))
	b, err := os.ReadFile(f.path("items.jsonl"))
	if err != nil || strings.Count(string(b), "\n") != 11 ||
		!strings.Contains(string(b), `{"key":"two\nlines","labels":[]}`) {
		t.Errorf("%s, %v", b, err)
	}
	// export writes the same as get prints.
	if got := must(t, "get", f.db, "0", "--json"); !strings.HasPrefix(string(b), got) {
		t.Errorf("get says %s", got)
	}
}
