package command

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/jsonform"
	"github.com/fddhdb/fddhdb/db"
)

func TestInit(t *testing.T) {
	f := fixture{dir: t.TempDir()}
	f.db = f.path("a.db")
	var got jsonform.Schema
	mustJSON(t, &got, "init", f.db, "--modality", "image:2", "--field", "year:int:index", "--field", "title:string")
	want := jsonform.Schema{
		Collection: "main", Modalities: []db.Modality{{Name: "image", Dim: 2}},
		Fields: []db.Field{{Name: "year", Type: db.Int, Indexed: true}, {Name: "title", Type: db.String}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
