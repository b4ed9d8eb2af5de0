package command

import (
	"strings"
	"testing"
)

// Database order is the order in which keys first came, whatever happened since.
func TestScanOrder(t *testing.T) {
	f := newFixture(t, 10, false)
	must(t, "put", f.db, "new")
	must(t, "put", f.db, "0", "--labels", "changed")
	must(t, "delete", f.db, "1")
	must(t, "put", f.db, "1")
	var keys []string
	for line := range strings.Lines(must(t, "scan", f.db)) {
		keys = append(keys, strings.Fields(line)[0])
	}
	if got, want := strings.Join(keys, " "), "key 0 2 3 4 5 6 7 8 9 new 1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := strings.Count(must(t, "scan", f.db, "--limit", "4"), "\n"); got != 5 {
		t.Errorf("%d lines", got)
	}
}
