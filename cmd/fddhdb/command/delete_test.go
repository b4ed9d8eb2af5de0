package command

import (
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
)

func TestDelete(t *testing.T) {
	f := newFixture(t, 20, true)
	var got struct{ Deleted int }
	mustJSON(t, &got, "delete", f.db, "3", "3", "4", "nosuch")
	if got.Deleted != 2 {
		t.Errorf("deleted %d", got.Deleted)
	}
	if n := must(t, "count", f.db); n != "18\n" {
		t.Errorf("count %s", n)
	}
	// A number that was used is not used again.
	must(t, "import", f.db, "--labels", f.labels)
	if code, _, _ := do(t, "get", f.db, "3"); code != exit.Failed {
		t.Error("a deleted item is back")
	}
}
