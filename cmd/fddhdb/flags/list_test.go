package flags

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplitList(t *testing.T) {
	for s, want := range map[string][]string{"": nil, " , ": nil, "a": {"a"}, " a b,,c ": {"a b", "c"}} {
		if diff := cmp.Diff(want, SplitList(s)); diff != "" {
			t.Errorf("%q: %s", s, diff)
		}
	}
}
