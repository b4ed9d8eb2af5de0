package flags

import (
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// Typed values are refused with an explanation, or give what the database accepts.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{"image:128", "image:128:sparse", "a:0", "a:99999999999999999999", "a", ":1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var list Modalities
		if err := list.Set(s); err == nil &&
			(len(list.List) != 1 || list.List[0].Dim < 1 || list.List[0].Dim > db.MaxDim) {
			t.Errorf("%q: %+v", s, list.List)
		}
	})
}
