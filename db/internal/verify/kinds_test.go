package verify

import (
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
)

// Every kind of record is known, so that none is reported as a stranger.
func TestKindsAreKnown(t *testing.T) {
	for kind := range 256 {
		k := byte(kind)
		err := codec.CheckKey([]byte{k})
		there := err == nil || !strings.Contains(err.Error(), "unknown kind")
		if known := k == codec.KindDatabase || k == codec.KindName || codec.Merged(k) || keyKinds[k]; known != there {
			t.Errorf("kind %02x: there are such records: %v; known: %v", k, there, known)
		}
	}
}
