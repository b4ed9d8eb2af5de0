package command

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
)

// Statistics of a database and of each collection have distinct codes, and bytes on
// disk, which grow with the number of items.
func TestStatsSayWhatIsStored(t *testing.T) {
	f := newFixture(t, 300, true)
	clitest.WriteNPY(t, f.path("codes.npy"), [][]uint8{{1, 2}, {3, 4}, {1, 2}})
	must(t, "init", f.db, "--collection", "codes", "--codes", "16")
	must(t, "import", f.db, "--collection", "codes", "--codes", f.path("codes.npy"))
	must(t, "compact", f.db)
	type form struct {
		Name          string
		DistinctCodes int   `json:"distinct_codes"`
		DiskBytes     int64 `json:"disk_bytes"`
		Collections   []form
	}
	var all, one form
	mustJSON(t, &all, "stats", f.db)
	if len(all.Collections) != 2 || all.Collections[0].DistinctCodes != 2 ||
		all.DistinctCodes != 2+all.Collections[1].DistinctCodes {
		t.Errorf("%+v", all)
	}
	var listed []form
	for line := range strings.Lines(must(t, "collections", f.db, "--json")) {
		var c form
		clitest.Check(t, json.Unmarshal([]byte(line), &c))
		listed = append(listed, c)
	}
	if !reflect.DeepEqual(listed, all.Collections) {
		t.Errorf("collections %+v, stats %+v", listed, all.Collections)
	}
	codes, main := listed[0].DiskBytes, listed[1].DiskBytes
	stored := all.DiskBytes - 1<<20 // without the spare file
	if codes <= 0 || codes > 10_000 || main <= 10*codes || main < stored/2 || main > stored*3/2 {
		t.Errorf("%d bytes of codes, %d of main, %d in all", codes, main, all.DiskBytes)
	}
	mustJSON(t, &one, "stats", f.db, "--collection", "main")
	if one.Name != "main" || one.DiskBytes != main {
		t.Errorf("%+v, want %d bytes", one, main)
	}
	if out := must(t, "stats", f.db, "--collection", "main"); !regexp.MustCompile(
		`(?m)^on disk +about [1-9]`).MatchString(out) {
		t.Error(out)
	}
}
