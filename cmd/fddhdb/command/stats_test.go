package command

import (
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

func TestStats(t *testing.T) {
	f := newFixture(t, 30, true)
	var s db.Stats
	mustJSON(t, &s, "stats", f.db)
	if s.Items != 30 || s.DiskBytes == 0 || s.MemoryBytes == 0 || len(s.Collections) != 1 || s.Collections[0].DistinctCodes == 0 {
		t.Errorf("%+v", s)
	}
	out := strings.Join(strings.Fields(must(t, "stats", f.db)), " ") // the columns are as wide as it takes
	for _, want := range []string{"items 30 ", "collection main ", "modality image, 8 dimensions, in 30 items ", "space 1, revision 1 ", "learned from 30 items, 0 pending "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
}
