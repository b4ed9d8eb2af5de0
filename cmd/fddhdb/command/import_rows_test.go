package command

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
)

// mixedRows is several times the number of rows that are read ahead.
const mixedRows = 2000

// A mixedRow is an item in the form of .jsonl and of scan.
type mixedRow struct {
	Key     string               `json:"key"`
	Vectors map[string][]float32 `json:"vectors"`
	Labels  []string             `json:"labels"`
	Payload []byte               `json:"payload"`
}

// newMixedRow returns item i. It differs from the item before it, and from the item
// whose memory it is read into.
func newMixedRow(i int) mixedRow {
	row := mixedRow{Key: fmt.Sprintf("k%04d", i), Vectors: map[string][]float32{"image": {float32(i)}},
		Labels: []string{}}
	switch i / 100 % 3 {
	case 1:
		row.Labels = []string{fmt.Sprint("a", i), fmt.Sprint("b", i)}
		row.Payload = []byte{}
	case 2:
		row.Labels = []string{fmt.Sprint("c", i)}
		row.Payload = []byte(fmt.Sprint("payload of ", i))
	}
	return row
}

// The values of an item are its own, whatever the rows before and after it have.
func TestImportKeepsRowsApart(t *testing.T) {
	f := fixture{dir: t.TempDir()}
	var b strings.Builder
	for i := range mixedRows {
		line := clitest.Must(json.Marshal(newMixedRow(i)))(t)
		fmt.Fprintf(&b, "%s\n", line)
	}
	file := f.path("items.jsonl")
	clitest.Check(t, os.WriteFile(file, []byte(b.String()), 0o644))
	dir, parquet := f.path("a.db"), f.path("items.parquet")
	must(t, "import", dir, "--init", "--items", file)
	checkMixedRows(t, dir)
	must(t, "export", dir, "--items", parquet)
	again := f.path("b.db")
	must(t, "import", again, "--init", "--items", parquet)
	checkMixedRows(t, again)
}

func checkMixedRows(t *testing.T, dir string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(must(t, "scan", dir, "--json", "--limit",
		fmt.Sprint(2*mixedRows))), "\n")
	if len(lines) != mixedRows {
		t.Fatalf("%d items, not %d", len(lines), mixedRows)
	}
	wrong := 0
	for i, line := range lines {
		var row mixedRow
		clitest.Check(t, json.Unmarshal([]byte(line), &row))
		want := newMixedRow(i)
		if row.Key == want.Key && slices.Equal(row.Labels, want.Labels) &&
			string(row.Payload) == string(want.Payload) &&
			slices.Equal(row.Vectors["image"], want.Vectors["image"]) {
			continue
		}
		if wrong++; wrong <= 3 {
			t.Errorf("item %d is %s", i, line)
		}
	}
	if wrong > 3 {
		t.Errorf("%d items are wrong in all", wrong)
	}
}
