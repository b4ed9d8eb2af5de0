package command

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/db"
)

func TestInit(t *testing.T) {
	f := fixture{dir: t.TempDir()}
	f.db = f.path("a.db")
	var got schemaJSON
	mustJSON(t, &got, "init", f.db, "--modality", "image:2", "--field", "year:int:index", "--field", "title:string")
	want := schemaJSON{
		Collection: "main", Modalities: []db.Modality{{Name: "image", Dim: 2}},
		Fields: []db.Field{{Name: "year", Type: db.Int, Indexed: true}, {Name: "title", Type: db.String}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseField(t *testing.T) {
	for s, want := range map[string]db.Field{
		"a:string":     {Name: "a", Type: db.String},
		"a:int:index":  {Name: "a", Type: db.Int, Indexed: true},
		"a:float":      {Name: "a", Type: db.Float},
		"a:bool:index": {Name: "a", Type: db.Bool, Indexed: true},
	} {
		if got, err := source.ParseField(s); err != nil || got != want {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	for _, bad := range []string{"", "a", ":int", "a:", "a:date", "a:int:", "a:int:unique", "a:int:index:more"} {
		if _, err := source.ParseField(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
