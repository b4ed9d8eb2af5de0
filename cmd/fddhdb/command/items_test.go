package command

import (
	"strings"
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

// In a trained collection put shows where the code comes from.
func TestPutCode(t *testing.T) {
	f := newFixture(t, 40, true)
	for _, c := range []struct {
		args []string
		from string
	}{
		{[]string{"--labels", "label1"}, "labels"},
		{[]string{"--labels", "label1,never seen"}, "labels"},
		{[]string{"--vector", "text=1,2,3,4,5"}, "fused"},
		{[]string{"--labels", "never seen", "--vector", "text=1,2,3,4,5"}, "fused"},
		{nil, ""},
	} {
		var got itemCode
		mustJSON(t, &got, append([]string{"put", f.db, "x"}, c.args...)...)
		if got.CodeFrom != c.from || (got.Code == "") != (c.from == "") {
			t.Errorf("%q: code %q from %q, want from %q", c.args, got.Code, got.CodeFrom, c.from)
		}
	}
}

// itemCode is what get and put --json print of the code of an item.
type itemCode struct {
	Code     string `json:"code"`
	CodeFrom string `json:"code_from"`
}

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
