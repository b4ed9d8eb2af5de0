package source

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseVector(t *testing.T) {
	x, err := ParseVector("1, -2.5,.5,1e-3")
	if diff := cmp.Diff([]float32{1, -2.5, .5, 1e-3}, x.Dense); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, bad := range []string{"", "1;2", "1,,2", "1,2,", ",", "1e99", "one", "1:x", "x:1", "1:1,1:2"} {
		if _, err := ParseVector(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
