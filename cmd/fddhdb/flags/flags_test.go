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

func TestNamedList(t *testing.T) {
	l := NamedList{Kind: "NAME=FILE"}
	for _, bad := range []string{"", "image", "=a.npy", "image="} {
		if l.Set(bad) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if err := l.Set("image=a=b.npy"); err != nil {
		t.Error(err)
	}
	if l.Set("image=c.npy") == nil {
		t.Error("a name is taken twice")
	}
	if diff := cmp.Diff([]Named{{"image", "a=b.npy"}}, l.List); diff != "" {
		t.Error(diff)
	}
}
