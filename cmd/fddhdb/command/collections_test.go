package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

func TestCollections(t *testing.T) {
	f := newFixture(t, 30, false)
	must(t, "init", f.db, "--collection", "codes", "--codes", "64")
	var names []string
	for line := range strings.Lines(must(t, "collections", f.db, "--json")) {
		var s db.CollectionStats
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "codes main" {
		t.Error(got)
	}
	want := "collection  items  labels  bits  distinct codes  modalities\n" +
		"codes           0       0    64               0  -\n" +
		"main           30       4     -               0  image, text\n"
	if got := must(t, "collections", f.db); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}
