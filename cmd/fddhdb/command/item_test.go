package command

import (
	"strings"
	"testing"
)

// Text with a meaning for a terminal, HTML or JSON comes unchanged through get and
// scan.
func TestItemsText(t *testing.T) {
	f := empty(t)
	must(t, "init", f.db, "--modality", "image:8")
	const key = `a "b" <c> & ü`
	must(t, "put", f.db, key, "--labels", "x>y", "--vector", "image=1,2,3,4,5,6,7,8")
	want := `{"key":"a \"b\" <c> & ü","vectors":{"image":[1,2,3,4,5,6,7,8]},"labels":["x>y"]}` + "\n"
	for _, verb := range [][]string{{"get", f.db, key}, {"scan", f.db}} {
		if got := must(t, append(verb, "--json")...); got != want {
			t.Errorf("%s: %s", verb[0], got)
		}
	}
	if got := must(t, "get", f.db, key); !strings.Contains(got, "image, 8 numbers: 1 2 3 4 5 6 ...\n") {
		t.Error(got)
	}
}
