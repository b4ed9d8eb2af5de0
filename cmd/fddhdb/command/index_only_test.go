package command

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
)

// Listings say that a copy is index-only. The copy answers searches and exports items without
// vectors; where a verb needs vectors, the error says that the copy has none.
func TestIndexOnly(t *testing.T) {
	f := newFixture(t, 60, false)
	must(t, "train", f.db, "--bits", "16")
	d := clitest.Must(db.Open(f.db, nil))(t)
	only := f.path("only.db")
	clitest.Check(t, d.Checkpoint(context.Background(), only, db.CheckpointOptions{IndexOnly: true}))
	clitest.Check(t, d.Close())
	if got := must(t, "collections", only); !strings.Contains(got, "image, text (index-only)") {
		t.Error(got)
	}
	if got := must(t, "stats", only); !strings.Contains(got, "index-only") {
		t.Error(got)
	}
	var s db.CollectionStats
	if err := json.Unmarshal([]byte(must(t, "collections", only, "--json")), &s); err != nil ||
		!s.IndexOnly || s.Items != 60 {
		t.Errorf("%+v, %v", s, err)
	}
	var it struct {
		Vectors    map[string]any
		Modalities []string
		Code       string
	}
	if err := json.Unmarshal([]byte(must(t, "get", only, "3", "--json")), &it); err != nil ||
		it.Vectors != nil || len(it.Modalities) != 2 || it.Code == "" {
		t.Errorf("%+v, %v", it, err)
	}
	if got := must(t, "get", only, "3"); !strings.Contains(got, "image, not in this copy") {
		t.Error(got)
	}
	for _, dir := range []string{f.db, only} {
		must(t, "export", dir, "--codes", dir+".npy", "--keys", dir+".txt")
	}
	for _, ext := range []string{".npy", ".txt"} {
		want := clitest.Must(os.ReadFile(f.db + ext))(t)
		if got, err := os.ReadFile(only + ext); err != nil || string(got) != string(want) {
			t.Errorf("%s is another, %v", ext, err)
		}
	}
	if want, got := must(t, "search", f.db, "--key", "3", "--to", "text", "--json"),
		must(t, "search", only, "--key", "3", "--to", "text", "--json"); want != got {
		t.Errorf("%s, not %s", got, want)
	}
	must(t, "verify", only, "--deep")
	for _, line := range []string{
		"export DIR --vectors image=" + f.path("v.npy"), "put DIR x", "delete DIR 3", "train DIR",
		"update DIR", "reindex DIR",
		"search DIR --key 3 --from image --to text --recall 1",
	} {
		args := strings.Fields(strings.ReplaceAll(line, "DIR", only))
		if code, _, stderr := do(t, args...); code == exit.Done ||
			!strings.Contains(stderr, `collection "main" is index-only`) {
			t.Errorf("%s: exit code %d, %s", line, code, stderr)
		}
	}
}
