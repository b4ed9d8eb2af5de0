package copies

import (
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
)

// All kinds of keys that there are are copied, once, in their order.
func TestExtractedKinds(t *testing.T) {
	var want, got []byte
	for kind := range 256 {
		if err := codec.CheckKey([]byte{byte(kind)}); err == nil || !strings.Contains(err.Error(), "unknown kind") {
			want = append(want, byte(kind))
		}
	}
	for _, group := range extractedKinds {
		if !slices.IsSorted(group) {
			t.Errorf("% x is not ascending", group)
		}
		got = append(got, group...)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("% x are copied, there are % x", got, want)
	}
}
