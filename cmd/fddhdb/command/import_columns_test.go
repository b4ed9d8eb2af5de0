package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/files/table"
)

// A key that comes twice behind the rows by which the column was taken for one is an error of its row.
func TestGuessedKeyThatComesTwice(t *testing.T) {
	f := fixture{dir: t.TempDir()}
	var b strings.Builder
	for i := range table.LookRows {
		fmt.Fprintf(&b, `{"id":%d,"x":[1]}`+"\n", i)
	}
	b.WriteString(`{"id":1,"x":[1]}`)
	file := f.path("twice.jsonl")
	clitest.WriteFile(t, file, b.String())
	want := fmt.Sprintf(`line %d: the key "1" is that of line 2, too: --key-column names another column of keys`, table.LookRows+1)
	says(t, exit.Failed, want, "import", f.path("a.db"), "--init", "--items", file)
	if code, stdout, stderr := do(t, "import", f.path("a.db"), "--init", "--items", file, "--on-error",
		"skip"); code != 0 ||
		!strings.Contains(stdout, "imported 1,000 items, skipped 1") || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
}
