package codec

import (
	"bytes"
	"testing"
)

// After Reset an edit writes what a new one writes: nothing of its entries is left.
func TestBlockEditIsUsedAgain(t *testing.T) {
	used := NewBlockEdit(-1)
	used.Set(0, []byte("first"))
	used.Set(255, []byte("last"))
	used.Clear(7)
	used.Reset(2)
	fresh := NewBlockEdit(2)
	for _, e := range []*BlockEdit{used, fresh} {
		e.Set(3, []byte{1, 2})
		e.Clear(9)
	}
	for _, final := range []bool{false, true} {
		if a, b := used.Append(nil, final), fresh.Append(nil, final); !bytes.Equal(a, b) {
			t.Errorf("final %v: %x, want %x", final, a, b)
		}
	}
	for _, off := range []byte{0, 7, 255} {
		if entry, known := used.Lookup(off); entry != nil || known {
			t.Errorf("offset %d: %x, %v", off, entry, known)
		}
	}
}
