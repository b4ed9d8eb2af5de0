package command

import (
	"strings"
	"testing"

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
