package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/forms"
	"github.com/fddhdb/fddhdb/db"
)

func TestAlter(t *testing.T) {
	f := newFixture(t, 30, true)
	out := must(t, "alter", f.db, "--add-modality", "audio:3", "--add-field", "year:int:index")
	if !strings.Contains(out, "audio (3 dimensions), field year (int, indexed)") ||
		!strings.Contains(out, "the model does not know audio: ") {
		t.Error(out)
	}
	if out = must(t, "alter", f.db, "--add-field", "note:string"); strings.Contains(out, "model") {
		t.Error(out)
	}
	var s forms.Schema
	mustJSON(t, &s, "alter", f.db, "--add-field", "seen:bool", "--json")
	if n := len(s.Modalities); s.Collection != "main" ||
		s.Modalities[n-1] != (db.Modality{Name: "audio", Dim: 3}) || len(s.Fields) != 3 || s.Bits != nil {
		t.Errorf("%+v", s)
	}
	says(t, exit.Failed, `exists already: field "year"`, "alter", f.db, "--add-field", "year:int")
	says(t, exit.Usage, "alter needs --add-modality", "alter", f.db)
}

func TestCollections(t *testing.T) {
	f := newFixture(t, 30, false)
	must(t, "init", f.db, "--collection", "codes", "--codes", "64")
	var names []string
	for line := range strings.Lines(must(t, "collections", f.db, "--json")) {
		var s db.CollectionStats
		clitest.Check(t, json.Unmarshal([]byte(line), &s))
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

func TestInit(t *testing.T) {
	f := empty(t)
	var got forms.Schema
	mustJSON(t, &got, "init", f.db, "--modality", "image:2", "--field", "year:int:index", "--field",
		"title:string")
	want := forms.Schema{
		Collection: "main", Modalities: []db.Modality{{Name: "image", Dim: 2}},
		Fields: []db.Field{{Name: "year", Type: db.Int, Indexed: true}, {Name: "title", Type: db.String}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
