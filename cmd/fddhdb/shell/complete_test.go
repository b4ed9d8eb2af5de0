package shell

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/db"
)

// FuzzComplete: any line can be completed, and a completion replaces exactly its word.
func FuzzComplete(f *testing.F) {
	s := newTestShell(f)
	for _, line := range []string{"", "scan --where \"label = 'x", "put k --field ", "--", "-c", "help help",
		"eval --vectors=image=", "search -k", ".read '",
		`count --where "label = 'a, b'"`, `count --where "label = 'x = y'"`,
		`scan --where='year IN (1, 2) AND NOT has('`, `put k --labels 'a,b`,
		`count --where "\"year\" >= "`} {
		f.Add(line, len([]rune(line)))
	}
	f.Fuzz(func(t *testing.T, line string, pos int) {
		runes := []rune(line)
		if pos %= len(runes) + 1; pos < 0 {
			pos += len(runes) + 1
		}
		checkCompletion(t, s, line, pos)
	})
}

func checkCompletion(t *testing.T, s *Shell, line string, pos int) {
	t.Helper()
	runes := []rune(line)
	head, words, tail := s.completeWord(line, pos)
	if !strings.HasPrefix(string(runes[:pos]), head) || string(runes[pos:]) != tail {
		t.Fatalf("%q at %d: head %q, tail %q", line, pos, head, tail)
	}
	// An inserted word is read as one word, which may go on.
	for _, w := range words {
		if list, _ := SplitWords(w); len(list) != 1 {
			t.Fatalf("%q at %d: %q is %d words", line, pos, w, len(list))
		}
	}
}

// Keys of items are completed. Of many only some are proposed, and the shell inserts the prefix that
// all of them share.
func TestCompleteKeys(t *testing.T) {
	s := newTestShell(t)
	c := clitest.Must(s.host.Collection(t.Context(), "main"))(t)
	put := func(key string) {
		t.Helper()
		if _, err := c.Put(t.Context(), &db.Item{Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	put("two words")
	put("tower")
	for i := range 2 * mostKeys {
		put(fmt.Sprintf("img%03d", i))
	}
	complete := func(line string) []string {
		_, words, _ := s.completeWord(line, len([]rune(line)))
		return words
	}
	for line, want := range map[string][]string{
		"get img01": {"img010 ", "img011 ", "img012 ", "img013 ", "img014 ", "img015 ",
			"img016 ", "img017 ", "img018 ", "img019 "},
		"get img010 img011 img01": {"img012 ", "img013 ", "img014 ", "img015 ", "img016 ", "img017 ",
			"img018 ", "img019 "},
		"delete x tow":     {"tower "},
		"put tower":        {"tower "},
		"put tower ":       nil,
		"search --key tow": {"tower "},
		"search --key=tow": {"--key=tower "},
		"get t":            {`"tower" `, `"two words" `},
		"get nosuch":       nil,
		"scan t":           nil,
	} {
		if got := complete(line); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	words := complete("get im")
	if len(words) != mostKeys+1 || words[0] != "img000 " || words[mostKeys] != "im… " {
		t.Errorf("of many keys: %q", words)
	}
}

func TestLabelsIn(t *testing.T) {
	for expr, want := range map[string][]string{
		"label = 'a'": {"a"}, "year = 2020": nil, "LABEL != 'it''s' OR label='a, b' AND label = 'a, b'": {"it's", "a, b"},
		"label IN ('x', 'y') OR title = 'z'": {"x", "y"}, "has(label)": nil, "label = 'open": nil,
	} {
		if got := LabelsIn(expr); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}
