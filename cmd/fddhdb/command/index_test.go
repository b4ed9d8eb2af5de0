package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// Vectors whose mean is long beside what they differ from it by have rounded distances, by which an
// index finds too little: it says so, and a search compares all.
func TestIndexThatFindsTooLittle(t *testing.T) {
	f := fixture{dir: t.TempDir()}
	f.db = f.path("a.db")
	x := synth.Embeddings(0, 2000, 32, 1)
	for _, v := range x {
		for i := range v {
			v[i] += 100
		}
	}
	clitest.WriteNPY(t, f.path("x.npy"), x)
	must(t, "init", f.db, "--modality", "e:32", "--metric", "e=l2")
	must(t, "import", f.db, "--vectors", "e="+f.path("x.npy"))
	out := must(t, "index", f.db)
	if !strings.Contains(out, "no reach has a recall of 0.99 of the nearest 1") {
		t.Error(out)
	}
	var found struct{ Hits []struct{ ID string } }
	answer := must(t, "search", f.db, "--from", "e", "--to", "e", "--vectors", f.path("x.npy"), "--row", "7", "-k", "1", "--json")
	if err := json.Unmarshal([]byte(answer), &found); err != nil || len(found.Hits) != 1 || found.Hits[0].ID != "7" || strings.Contains(answer, `"approximate":true`) {
		t.Error(err, answer)
	}
}
