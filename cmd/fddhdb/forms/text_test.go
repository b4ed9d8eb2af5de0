package forms

import (
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

func TestCodeOrigin(t *testing.T) {
	for from, want := range map[string]string{"labels": "from its labels", "fused": "from its vectors",
		"given": "given", "image": "from its image"} {
		if got := codeOrigin(from); got != want {
			t.Errorf("%s: %s", from, got)
		}
	}
}

func TestParseField(t *testing.T) {
	for s, want := range map[string]db.Field{
		"a:string":     {Name: "a", Type: db.String},
		"a:int:index":  {Name: "a", Type: db.Int, Indexed: true},
		"a:float":      {Name: "a", Type: db.Float},
		"a:bool:index": {Name: "a", Type: db.Bool, Indexed: true},
	} {
		if got, err := ParseField(s); err != nil || got != want {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	for _, bad := range []string{"", "a", ":int", "a:", "a:date", "a:int:", "a:int:unique",
		"a:int:index:more"} {
		if _, err := ParseField(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
