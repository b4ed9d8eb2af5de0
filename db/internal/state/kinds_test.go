package state

import (
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
)

// Every kind of record goes with its collection or with its space, save those that are
// about the database as a whole.
func TestKindsAreDeleted(t *testing.T) {
	gone := slices.Concat(CollectionKinds, SpaceKinds, []byte{codec.KindDatabase, codec.KindName})
	for kind := range 256 {
		err := codec.CheckKey([]byte{byte(kind)})
		if there := err == nil || !strings.Contains(err.Error(), "unknown kind"); there != slices.Contains(gone, byte(kind)) {
			t.Errorf("kind %02x: there are such records: %v; they are deleted: %v", kind, there, !there)
		}
	}
}
