package source

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/rows"
)

// A bad key costs its row: later rows can be read.
func TestKeySource(t *testing.T) {
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "keys.txt"),
		"a\n\na\n"+strings.Repeat("x", db.MaxKeyBytes+1)+"\nb\n")
	s := clitest.Must(OpenKeys(filepath.Join(dir, "keys.txt"), rows.RefuseDuplicates))(t)
	var good []string
	bad := 0
	for range s.Rows() {
		var item db.Item
		var row *rows.Error
		switch err := s.Next(&item); {
		case err == nil:
			good = append(good, item.Key)
		case errors.As(err, &row):
			bad++
		default:
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"a", "b"}, good); diff != "" || bad != 3 {
		t.Errorf("%d bad keys; %s", bad, diff)
	}
}
