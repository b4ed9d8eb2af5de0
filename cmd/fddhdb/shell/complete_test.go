package shell

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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
	c, err := s.host.Collection("main")
	if err != nil {
		t.Fatal(err)
	}
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

// wherePieces are the pieces of lines of FuzzCompleteWhere.
var wherePieces = []string{" ", "label", "year", "caption", "has", "AND", "OR", "NOT", "IN", "=", "!=", "<",
	">=", "(", ")", ",", "'", "''", `"`, "a, b", "x = y",
	"it's", "image", "17", "-1.5", "label = '", " IN (", "') AND ", "\\", "\n", "é", "#", "--where ", "scan "}

// FuzzCompleteWhere completes expressions of quotes, commas, operators and words; each
// byte selects a piece. In the shell and elsewhere, a candidate begins with the
// expression.
func FuzzCompleteWhere(f *testing.F) {
	s := newTestShell(f)
	seed := func(pieces ...string) {
		var picks []byte
		for _, p := range pieces {
			picks = append(picks, byte(slices.Index(wherePieces, p)))
		}
		f.Add(picks)
	}
	seed("label", " ", "=", " ", "'", "a, b", "'")
	seed("caption", "=", "'", "x = y", "'", " ")
	seed("label", " IN (", "'", "a, b", "'", ",", "'", "it's")
	seed("NOT", " ", "has", "(", "image", ")", " ", "OR", " ", "year", ">=", "17", " ")
	f.Fuzz(func(t *testing.T, picks []byte) {
		if len(picks) > 200 {
			return
		}
		var b strings.Builder
		for _, p := range picks {
			b.WriteString(wherePieces[int(p)%len(wherePieces)])
		}
		expr := b.String()
		cmd, _, err := s.root().Find([]string{"scan"})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range s.completer().whereCandidates(cmd, s.host.Dir(), expr) {
			_, typed := cutWhere(expr)
			if !strings.HasPrefix(w, expr[:typed]) || len(w) == typed {
				t.Fatalf("%q: candidate %q", expr, w)
			}
		}
		for _, line := range []string{"scan --where " + expr, "scan --where " + QuoteWord(expr),
			`scan --where "` + expr, "scan --where='" + expr} {
			checkCompletion(t, s, line, len([]rune(line)))
		}
	})
}
