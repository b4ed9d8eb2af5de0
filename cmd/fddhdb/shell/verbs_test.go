package shell

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/peterh/liner"
)

// Nothing in completion, history or editing of lines ends the shell.
func TestShellOutlivesItsEditor(t *testing.T) {
	s, stderr := testDialogue(t)
	host := s.host
	s.host = nil // completion needs it
	if _, words, _ := s.Complete("count --wh", 10); len(words) > 0 {
		t.Error("it completed")
	}
	s.host = host
	if !strings.Contains(stderr.String(), "warning: completion failed: ") {
		t.Errorf("stderr: %q", stderr)
	}

	s.terminal.editor = &liner.State{} // without a reader
	_, err := s.terminal.ask(context.Background(), nil, "")
	if _, failed := err.(*editorError); !failed || !strings.Contains(err.Error(), "press Enter") {
		t.Fatalf("ask: %v", err)
	}
	s.terminal.doWithoutEditor(strings.NewReader("count\n"))
	if line, err := s.terminal.ask(context.Background(), nil, ""); line != "count" || err != nil ||
		s.terminal.cooked.(*testTerminal).applied != 1 {
		t.Errorf("%q, %v", line, err)
	}
}

func TestSplitWords(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
		open byte
	}{
		{"", nil, 0},
		{" \t ", nil, 0},
		{"count", []string{"count"}, 0},
		{"  get a\tb  ", []string{"get", "a", "b"}, 0},
		{`scan --where "label = 'art'"`, []string{"scan", "--where", "label = 'art'"}, 0},
		{`a 'b "c" \d' e`, []string{"a", `b "c" \d`, "e"}, 0},
		{`"a\"b\\c\d"`, []string{`a"b\c\d`}, 0},
		{`a\ b \'c`, []string{"a b", "'c"}, 0},
		{`a""b ''`, []string{"ab", ""}, 0},
		{"count # items", []string{"count"}, 0},
		{"# all", nil, 0},
		{"a#b '#c'", []string{"a#b", "#c"}, 0},
		{"a # b\nc", []string{"a", "c"}, 0},
		{"a \\\nb", []string{"a", "b"}, 0},
		{"a\\\nb", []string{"ab"}, 0},
		{"'a\nb'", []string{"a\nb"}, 0},
		{"\"a\\\nb\"", []string{"ab"}, 0},
		{"a 'b", []string{"a", "b"}, '\''},
		{`a "b\"`, []string{"a", `b"`}, '"'},
		{`a \`, []string{"a", ""}, '\\'},
		{"count;", []string{"count"}, 0},
		{"get a ; \n", []string{"get", "a"}, 0},
		{"get 'a;';;", []string{"get", "a;"}, 0},
		{`get a\;`, []string{"get", "a;"}, 0},
		{"get a;b ; c", []string{"get", "a;b", ";", "c"}, 0},
		{";", nil, 0},
		{"cats 🐈 ü", []string{"cats", "🐈", "ü"}, 0},
		{"a\xffb", []string{"a\xffb"}, 0},
	} {
		words, open := SplitWords(c.line)
		if got := Unquoted(words); !slices.Equal(got, c.want) || open != c.open {
			t.Errorf("%q: %q, open %q, want %q, open %q", c.line, got, open, c.want, c.open)
		}
	}
}

// FuzzSplitWords: quoted words come back unchanged, and every line is read without a
// panic, with its words at their places.
func FuzzSplitWords(f *testing.F) {
	for _, s := range []string{"", "count", `a 'b' "c\"`, "a \\\n# x\ny", "#", `\`, "a;", ";"} {
		f.Add(s, "b c")
	}
	f.Fuzz(func(t *testing.T, line, other string) {
		words, _ := SplitWords(line)
		for i, w := range words {
			if w.start < 0 || w.start >= len(line) || i > 0 && w.start <= words[i-1].start {
				t.Fatalf("%q: word %d begins at %d", line, i, w.start)
			}
		}
		back, open := SplitWords(QuoteWord(line) + " " + QuoteWord(other))
		if got := Unquoted(back); open != 0 || !slices.Equal(got, []string{line, other}) {
			t.Fatalf("%q, %q: %q, open %q", line, other, got, open)
		}
	})
}
