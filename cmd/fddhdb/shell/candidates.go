package shell

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db/api"
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
	if quote == 0 && len(proposed) > 1 &&
		slices.ContainsFunc(proposed, func(w string) bool { return QuoteWord(w) != w }) {
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

func (s *Shell) collections() []string {
	return s.completer().collections(context.Background(), s.host.Dir())
}

// Words are completed by the name of the flag, or by the place of the argument.

// candidates are the possible completions of a word.
type candidates struct {
	words []string
	files bool // also any file
	dirs  bool // also any folder
}

// A completer completes words. look opens the database in a folder, if possible, and
// calls f with it.
type completer struct {
	look func(ctx context.Context, dir string, f func(d api.Database))
}

// valueCandidates completes the value of a flag of a verb on a database.
func (w completer) valueCandidates(cmd *cobra.Command, dir, flag, word string) candidates {
	f := cmd.Flags().Lookup(flag)
	if f == nil {
		return candidates{}
	}
	switch flag {
	case "from", "to":
		return candidates{words: w.modalities(cmd, dir)}
	case "collection":
		return candidates{words: w.collections(cmd.Context(), dir)}
	case "space":
		return candidates{words: w.spaces(cmd, dir)}
	case "key":
		return candidates{words: w.keys(cmd, dir, word)}
	case "by":
		return candidates{words: append([]string{"label"}, w.fields(cmd, dir)...)}
	case "facets":
		return candidates{words: nextInList(word, append([]string{"label"}, w.fields(cmd, dir)...))}
	case "rename-label":
		return candidates{words: suffixed(w.labels(cmd, dir), "=")}
	case "mode":
		return candidates{words: term.Modes}
	}
	// All other flags are completed by the type of value in their usage.
	takes, _ := pflag.UnquoteUsage(f)
	switch words := enumerations[flag]; {
	case flag == "labels" && cmd.Name() == "put":
		return candidates{words: nextInList(word, w.labels(cmd, dir))}
	case flag == "include":
		return candidates{words: nextInList(word, words)}
	case flag == "index" && cmd.Name() == "alter":
		return candidates{words: w.fields(cmd, dir)}
	case flag == "field" && takes == "NAME=VALUE":
		return candidates{words: suffixed(w.fields(cmd, dir), "=")}
	case strings.HasPrefix(takes, "NAME=") && flag != "field":
		return w.namedCandidates(cmd, dir, word, words)
	case words != nil:
		return candidates{words: words}
	}
	return candidates{files: strings.Contains(takes, "FILE"), dirs: takes == "DIR" || takes == "FOLDER"}
}

// enumerations are the values of flags with few values.
var enumerations = map[string][]string{
	"rerank":       {"auto", "projection", "none", "asymmetric"},
	"include":      {"labels", "fields", "payload", "vectors"},
	"method":       {"auto", "labels", "joint", "paper"},
	"teacher":      {"auto", "labels", "modality", "self"},
	"on-error":     {"stop", "skip"},
	"on-duplicate": {"error", "first", "last"},
	"index":        {"all", "none"}, // of import
	"features":     {"raw", "zscore", "hellinger", "log", "l2", "hellinger-l2"},
	"map":          {"rbf", "linear", "rbf+linear"},
}

// namedCandidates completes NAME=, and after it one of the words, or a file if the flag
// takes one.
func (w completer) namedCandidates(cmd *cobra.Command, dir, word string, words []string) candidates {
	name, value, behind := strings.Cut(word, "=")
	switch {
	case !behind:
		return candidates{words: suffixed(w.modalities(cmd, dir), "=")}
	case words != nil:
		return candidates{words: prefixed(name+"=", words)}
	}
	return candidates{words: prefixed(name+"=", listFiles(value))}
}

// argumentCandidates completes an argument of a verb. args are the arguments before it,
// beginning with the folder of the database if the verb takes one; dir is that folder.
func (w completer) argumentCandidates(cmd *cobra.Command, dir string, args []string, word string) candidates {
	place, ok := argumentPlace(cmd, len(args))
	if !ok {
		return candidates{}
	}
	switch place {
	case "DIR", "DIR|URL", "URL", "[URL]":
		return candidates{dirs: true}
	case "(FILE":
		return candidates{files: true}
	case "KEY", "KEY...", "(KEY...":
		keys := w.keys(cmd, dir, word)
		return candidates{words: slices.DeleteFunc(keys,
			func(k string) bool { return slices.Contains(args, k) })}
	}
	return candidates{}
}

// argumentPlace returns the n-th argument of a verb as its usage names it. An argument
// that may be repeated takes all later places.
func argumentPlace(cmd *cobra.Command, n int) (string, bool) {
	places := strings.Fields(cmd.Use)[1:]
	for i, p := range places {
		if i == n || i < n && strings.HasSuffix(strings.Trim(p, "[]"), "...") {
			return p, true
		}
	}
	return "", false
}

func (w completer) lookQuietlyAt(cmd *cobra.Command, dir string,
	f func(ctx context.Context, c api.Collection)) {
	ctx := cmd.Context()
	name := "main"
	if flag := cmd.Flags().Lookup("collection"); flag != nil && flag.Value.String() != "" {
		name = flag.Value.String()
	}
	w.look(ctx, dir, func(d api.Database) {
		if c, err := d.Collection(ctx, name); err == nil {
			f(ctx, c)
		}
	})
}

func (w completer) collections(ctx context.Context, dir string) (names []string) {
	w.look(ctx, dir, func(d api.Database) { names, _ = d.Collections(ctx) })
	return names
}

func (w completer) modalities(cmd *cobra.Command, dir string) (names []string) {
	w.lookQuietlyAt(cmd, dir, func(ctx context.Context, c api.Collection) {
		schema, _ := c.Schema(ctx)
		for _, m := range schema.Modalities {
			names = append(names, m.Name)
		}
	})
	return names
}

func (w completer) fields(cmd *cobra.Command, dir string) (names []string) {
	w.lookQuietlyAt(cmd, dir, func(ctx context.Context, c api.Collection) {
		schema, _ := c.Schema(ctx)
		for _, f := range schema.Fields {
			names = append(names, f.Name)
		}
	})
	return names
}

func (w completer) labels(cmd *cobra.Command, dir string) (names []string) {
	w.lookQuietlyAt(cmd, dir, func(ctx context.Context, c api.Collection) { names, _ = c.Labels(ctx) })
	return names
}

const (
	// mostKeys is the number of keys that are proposed.
	mostKeys = 50
	// keysTime bounds the time of looking for them: a database may be on a slow disk.
	keysTime = 300 * time.Millisecond
	// moreKeys ends a proposal that stands for all further keys. It keeps a shell from
	// completing what only the first keys have in common.
	moreKeys = "…"
)

// keys returns the first keys of items that begin with a prefix.
func (w completer) keys(cmd *cobra.Command, dir, prefix string) (keys []string) {
	w.lookQuietlyAt(cmd, dir, func(ctx context.Context, c api.Collection) {
		ctx, cancel := context.WithTimeout(ctx, keysTime)
		defer cancel()
		for key, err := range c.Keys(ctx, prefix) {
			if err == nil && len(keys) < mostKeys {
				keys = append(keys, key)
				continue
			}
			if len(keys) > 0 {
				keys = append(keys, prefix+moreKeys)
			}
			return
		}
	})
	return keys
}

func (w completer) spaces(cmd *cobra.Command, dir string) (numbers []string) {
	w.lookQuietlyAt(cmd, dir, func(ctx context.Context, c api.Collection) {
		spaces, _ := c.Spaces(ctx)
		for _, s := range spaces {
			numbers = append(numbers, fmt.Sprint(s.Space))
		}
	})
	return numbers
}

// listFiles returns the files whose paths begin with word; folders end in /.
func listFiles(word string) []string {
	dir := word[:strings.LastIndexAny(word, "/"+string(os.PathSeparator))+1]
	read := dir
	if read == "" {
		read = "."
	}
	entries, err := os.ReadDir(read)
	if err != nil {
		return nil
	}
	var paths []string
	for _, entry := range entries {
		path := dir + entry.Name()
		if !strings.HasPrefix(path, word) || strings.HasPrefix(entry.Name(), ".") && word == dir {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			path += "/"
		}
		paths = append(paths, path)
	}
	return paths
}

// nextInList completes the last part of a list to one of the words that are not in the
// list yet.
func nextInList(list string, words []string) []string {
	before := list[:strings.LastIndexByte(list, ',')+1]
	there := strings.Split(before, ",")
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(there, w) })
	return prefixed(before, words)
}

func prefixed(prefix string, words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = prefix + w
	}
	return out
}

func suffixed(words []string, suffix string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w + suffix
	}
	return out
}

// matching returns the words that begin with a prefix.
func matching(words []string, prefix string) []string {
	var out []string
	for _, w := range words {
		if w != "" && strings.HasPrefix(w, prefix) {
			out = append(out, w)
		}
	}
	return out
}

// unfinished reports whether a completed word goes on: a path, or a value after =.
func unfinished(w string) bool { return strings.HasSuffix(w, "=") || strings.HasSuffix(w, "/") }

// RegisterCompletions registers with cobra, for bash and other shells, the values of flags that have few. All
// else is a file to them. Words of a database, which a stranger may have chosen, are proposed in the shell of
// fddhdb alone: bash and its like insert proposals without quotes, and evaluate the line.
func RegisterCompletions(root *cobra.Command) {
	_ = root.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(term.Modes,
		cobra.ShellCompDirectiveNoFileComp))
	for _, c := range root.Commands() {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			takes, _ := pflag.UnquoteUsage(f)
			if words := enumerations[f.Name]; words != nil && !strings.HasPrefix(takes, "NAME") {
				_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words,
					cobra.ShellCompDirectiveNoFileComp))
			}
		})
	}
}

var (
	// labelTest matches what an expression of --where compares labels with: one text, or a list.
	labelTest  = regexp.MustCompile(`(?i)\blabel\s*(?:!?=|\bIN\s*\()\s*((?:'(?:[^']|'')*'[\s,]*)+)`)
	quotedText = regexp.MustCompile(`'((?:[^']|'')*)'`)
)

// LabelsIn returns the labels that an expression compares with, each once, in their
// order.
func LabelsIn(expr string) (labels []string) {
	for _, test := range labelTest.FindAllStringSubmatch(expr, -1) {
		for _, text := range quotedText.FindAllStringSubmatch(test[1], -1) {
			if label := strings.ReplaceAll(text[1], "''", "'"); !slices.Contains(labels, label) {
				labels = append(labels, label)
			}
		}
	}
	return labels
}
