package record

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/codec"
)

// Ranges of keys hold what was added, and stay apart and in order.
func TestKeyRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ranges KeyRanges
		var want [256]bool
		for range rapid.IntRange(0, 12).Draw(t, "ranges") {
			lo := rapid.IntRange(0, 250).Draw(t, "lo")
			hi := rapid.IntRange(lo+1, 256).Draw(t, "hi")
			var end []byte // nil: to the end
			if hi < 256 {
				end = []byte{byte(hi)}
			}
			ranges = ranges.Add([]byte{byte(lo)}, end)
			for i := lo; i < hi; i++ {
				want[i] = true
			}
		}
		for i, is := range want {
			key := []byte{byte(i)}
			from, to := ranges.Overlapping(key, codec.PrefixEnd(key))
			if ranges.Has(key) != is || (from < to) != is {
				t.Fatalf("%d: %v, not %v: %x", i, !is, is, ranges)
			}
		}
		for i := 1; i < len(ranges); i++ {
			if ranges[i-1].endsAfter(ranges[i].Lo) {
				t.Fatalf("ranges overlap: %x", ranges)
			}
		}
	})
}
