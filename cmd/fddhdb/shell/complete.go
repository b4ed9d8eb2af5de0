package shell

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// Complete implements liner.WordCompleter. pos counts runes.
func (s *Shell) Complete(line string, pos int) (head string, words []string, tail string) {
	s.guarded("completion", func() { head, words, tail = s.completeWord(line, pos) })
	return head, words, tail
}

func (s *Shell) completeWord(line string, pos int) (head string, words []string, tail string) {
	runes := []rune(line)
	before, tail := string(runes[:pos]), string(runes[pos:])
	list, open := SplitWords(before)
	if open == '\\' {
		return before, nil, tail
	}
	last := word{start: len(before)}
	if len(list) > 0 && (open != 0 || !strings.HasSuffix(before, " ")) {
		last = list[len(list)-1]
		list = list[:len(list)-1]
	}
	if open == 0 && last.quote != 0 && strings.HasSuffix(before, string(last.quote)) {
		return before, nil, tail // the word is closed; a completion would open it again
	}
	proposed, quote := s.candidates(Unquoted(list), last.text), last.quote
	if quote == 0 && len(proposed) > 1 && slices.ContainsFunc(proposed, func(w string) bool { return QuoteWord(w) != w }) {
		quote = '"' // for all: the editor inserts the beginning that they share
	}
	for _, w := range proposed {
		words = append(words, spell(w, quote))
	}
	return before[:last.start], words, tail
}

// spell quotes a completed word with the quote that it began with, and ends it unless
// it goes on.
func spell(w string, quote byte) string {
	goesOn := unfinished(w)
	end := " "
	if goesOn {
		end = ""
	}
	q := QuoteWord(w)
	if quote == 0 && q == w {
		return w + end
	}
	switch {
	case q == w:
		q = string(quote) + w + string(quote)
	case quote == '"' && q[0] == '\'' && !strings.ContainsAny(w, "\"\\$`"):
		q = `"` + w + `"`
	}
	if goesOn {
		return q[:len(q)-1]
	}
	return q + end
}

// candidates returns the sorted completions of the last word of a line.
func (s *Shell) candidates(before []string, word string) []string {
	c := s.lineCandidates(before, word)
	words := c.words
	if c.files || c.dirs {
		words = listFiles(word)
		if c.dirs {
			words = slices.DeleteFunc(words, func(w string) bool { return !strings.HasSuffix(w, "/") })
		}
	}
	words = slices.DeleteFunc(matching(words, word), func(w string) bool {
		return term.Plain(w) != w // it would move the cursor
	})
	slices.Sort(words)
	return slices.Compact(words)
}

func (s *Shell) lineCandidates(before []string, word string) candidates {
	if len(before) == 0 {
		return candidates{words: s.names()}
	}
	if strings.HasPrefix(before[0], ".") {
		for _, d := range DotCommands() {
			switch {
			case d.Name != before[0] || len(before) > d.most:
			case d.file:
				return candidates{files: true}
			case d.words != nil:
				return candidates{words: d.words(s)}
			}
		}
		return candidates{}
	}
	root := s.root()
	cmd, _, err := root.Find(before[:1])
	switch {
	case err != nil || !cmd.HasParent():
		return candidates{}
	case cmd.Name() == "help" && len(before) == 1:
		return candidates{words: VerbNames(root)}
	case cmd.HasSubCommands() && len(before) == 1:
		return candidates{words: VerbNames(cmd)}
	}
	// Wrong flags before the word do not matter.
	cmd.FParseErrWhitelist.UnknownFlags = true
	_ = cmd.ParseFlags(before[1:])
	cmd.SetContext(context.Background()) // completions may ask the database, and the command does not run
	dir := s.host.Dir()
	if name, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(name, "--") {
		c := s.completer().valueCandidates(cmd, dir, name[2:], value)
		if c.files {
			c.words = listFiles(value)
		}
		return candidates{words: prefixed(name+"=", c.words)}
	}
	if f := flagWanting(cmd, before[len(before)-1]); f != nil {
		return s.completer().valueCandidates(cmd, dir, f.Name, word)
	}
	if strings.HasPrefix(word, "-") {
		var flags []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && (!f.Changed || repeats(f)) {
				flags = append(flags, "--"+f.Name)
			}
		})
		return candidates{words: flags}
	}
	return s.completer().argumentCandidates(cmd, dir, cmd.Flags().Args(), word)
}

// flagWanting returns the flag that takes a value after a word, or nil.
func flagWanting(cmd *cobra.Command, word string) *pflag.Flag {
	var f *pflag.Flag
	switch {
	case strings.Contains(word, "="):
	case strings.HasPrefix(word, "--"):
		f = cmd.Flags().Lookup(word[2:])
	case len(word) == 2 && word[0] == '-':
		f = cmd.Flags().ShorthandLookup(word[1:])
	}
	if f == nil || f.NoOptDefVal != "" {
		return nil
	}
	return f
}

// repeats reports whether a flag may be given several times.
func repeats(f *pflag.Flag) bool { return strings.HasPrefix(f.Value.Type(), "NAME") }

// names returns the words that a line can begin with.
func (s *Shell) names() []string { return append(VerbNames(s.root()), dotNames()...) }

func (s *Shell) completer() completer { return completer{s.host.Look} }

func (s *Shell) collections() []string { return s.completer().collections(s.host.Dir()) }
