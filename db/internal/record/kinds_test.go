package record

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/codec"
)

// Every constant of codec/key.go is in the table of kinds, in the comment above the constants,
// in docs/FORMAT.md and known to codec.CheckKey; and nothing else is.
func TestKindsAreComplete(t *testing.T) {
	table := map[byte]bool{}
	for _, kind := range Kinds(OfDatabase) {
		table[kind] = true
	}
	checked := map[byte]bool{}
	for kind := range 256 {
		err := codec.CheckKey([]byte{byte(kind)})
		checked[byte(kind)] = err == nil || !strings.Contains(err.Error(), "unknown kind")
	}
	lists := map[string]map[byte]bool{
		"the constants of codec/key.go": kindsIn(t, "../../../codec/key.go",
			`(?m)^\tKind\w+ += 0x([0-9a-f]{2})$`),
		"the comment of codec/key.go": kindsIn(t, "../../../codec/key.go", `(?m)^//\t([0-9a-f]{2})  `),
		"docs/FORMAT.md": kindsIn(t, "../../../docs/FORMAT.md",
			"(?m)^\\| `([0-9a-f]{2})` \\|"),
		"codec.CheckKey": checked,
	}
	for name, list := range lists {
		for kind := range 256 {
			if k := byte(kind); list[k] != table[k] {
				t.Errorf("kind %02x: in %s: %v, in the table of kinds: %v", k, name, list[k], table[k])
			}
		}
	}
}

// kindsIn returns the kinds that an expression finds in a file, in hexadecimal.
func kindsIn(t *testing.T, file, expression string) map[byte]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := map[byte]bool{}
	for _, match := range regexp.MustCompile(expression).FindAllSubmatch(text, -1) {
		kind, err := strconv.ParseUint(string(match[1]), 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		found[byte(kind)] = true
	}
	return found
}

// No key is too short to name what its record belongs to.
func TestScopesFitKeys(t *testing.T) {
	for _, kind := range Kinds(OfDatabase) {
		for n := 1; n < KindOf(kind).Scope.KeyBytes(); n++ {
			if codec.CheckKey(bytes.Repeat([]byte{kind}, n)) == nil {
				t.Errorf("kind %02x has keys of %d bytes", kind, n)
			}
		}
	}
}

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
