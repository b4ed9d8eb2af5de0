package shell

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
)

// root returns the verbs in their form for the shell: DIR is the database of the
// session.
func (s *Shell) root() *cobra.Command {
	root := s.host.Root(s.mode)
	for _, name := range []string{"command", "readonly", "version"} {
		root.Flags().Lookup(name).Hidden = true
	}
	root.Long = Help + "\n\n" + dotHelp()
	root.Example = ""
	root.Use = root.Name() + " VERB [ARGUMENTS]"
	// which stands in front of verbs
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: ""}
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		c.Long, c.Example = s.inShell(c.Long), s.inShell(c.Example)
		c.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = s.inShell(f.Usage) })
		help(c, args)
	})
	root.RunE = func(_ *cobra.Command, args []string) error { return s.unknownVerb(root, args) }
	AddDefaultVerbs(root)
	for _, c := range root.Commands() {
		s.adapt(c)
	}
	return root
}

// VerbNames returns the names of the verbs of a root, without hidden ones.
func VerbNames(root *cobra.Command) []string {
	var names []string
	for _, c := range root.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return names
}

// AddDefaultVerbs adds the verbs that cobra otherwise adds later.
func AddDefaultVerbs(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
}

func (s *Shell) unknownVerb(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return exit.Usagef("a verb is missing: .help lists them")
	}
	if verb := s.host.Meant(args[0], append(VerbNames(root), dotNames()...)); verb != "" {
		return exit.Usagef("there is no verb %q: did you mean %s?", args[0], verb)
	}
	return exit.Usagef("there is no verb %q: .help lists them", args[0])
}

// adapt turns a verb of the command line into one of the shell.
func (s *Shell) adapt(c *cobra.Command) {
	if f := c.Flags().Lookup("collection"); f != nil && f.Value.String() == "main" {
		// The flag stays unchanged, as verbs check whether it was given.
		_ = f.Value.Set(s.collection)
		if f.DefValue != "" {
			f.DefValue = s.collection
		}
	}
	verb, rest, _ := strings.Cut(c.Use, " ")
	dir := s.host.Dir()
	var withDir func(args []string) []string
	switch first, rest, _ := strings.Cut(rest, " "); first {
	case "DIR":
		c.Use = strings.TrimSpace(verb + " " + rest)
		withDir = func(args []string) []string { return append([]string{dir}, args...) }
	case "DIR|URL":
		c.Use = verb + " [URL]"
		withDir = func(args []string) []string {
			if len(args) > 0 {
				return args
			}
			return []string{dir}
		}
	default:
		return
	}
	valid, run := c.Args, c.RunE
	c.Args = func(c *cobra.Command, args []string) error {
		err := valid(c, withDir(args))
		if err != nil && len(args) > 0 && s.host.IsDatabase(args[0]) {
			return exit.Usagef("%s works on the database that is open: leave %q out", c.Name(), args[0])
		}
		return err
	}
	c.RunE = func(c *cobra.Command, args []string) error { return run(c, withDir(args)) }
}

// CommandLines returns an expression that finds command lines in texts: those on the
// database in dir, or on the database of an example.
func CommandLines(verbs []string, dir string) *regexp.Regexp {
	return regexp.MustCompile(`\bfddhdb (` + strings.Join(verbs, "|") + `)\b(?: DIR\b| ` +
		regexp.QuoteMeta(dir) + `| [\w./-]+\.db\b)?`)
}

// inShell rewrites the command lines in a text for the shell: without fddhdb and the
// folder of the database.
func (s *Shell) inShell(text string) string { return s.commandLines.ReplaceAllString(text, "$1") }

// A word is a word of a line of the shell.
type word struct {
	text  string // without quotes
	start int    // byte of the line at which it begins
	quote byte   // first quote in it, 0 if there is none
}

// SplitWords cuts a line into words like a POSIX shell. Blanks separate words. '...' is
// literal. In "..." a backslash escapes only ", \, $, ` and the end of a line; outside
// of quotes it escapes any character. # begins a comment where a word could begin. A ; at
// the end of the line is ignored: people type it from habit. Nothing is expanded.
//
// open is the quote or backslash that the line ends in, or 0 if the line is complete.
// The last word then reaches to the end of the line.
func SplitWords(line string) (words []word, open byte) {
	var text strings.Builder
	var w word
	inWord := false
	begin := func(i int) {
		if !inWord {
			inWord, w = true, word{start: i}
		}
	}
	end := func() {
		if inWord {
			w.text = text.String()
			words = append(words, w)
			text.Reset()
			inWord = false
		}
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case open == '\'':
			if c == '\'' {
				open = 0
			} else {
				text.WriteByte(c)
			}
		case open == '"' && c == '"':
			open = 0
		case open == '"' && c == '\\' && i+1 < len(line) && strings.IndexByte("\"\\$`\n", line[i+1]) >= 0:
			if i++; line[i] != '\n' {
				text.WriteByte(line[i])
			}
		case open == '"':
			text.WriteByte(c)
		case c == '\'' || c == '"':
			begin(i)
			if open = c; w.quote == 0 {
				w.quote = c
			}
		case c == '\\' && i+1 == len(line):
			begin(i)
			open = c
		case c == '\\' && line[i+1] == '\n':
			i++
		case c == '\\':
			begin(i)
			i++
			text.WriteByte(line[i])
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			end()
		case c == ';' && strings.Trim(line[i:], "; \t\r\n") == "":
			end()
			return words, 0
		case c == '#' && !inWord:
			rest := strings.IndexByte(line[i:], '\n')
			if rest < 0 {
				return words, 0
			}
			i += rest
		default:
			begin(i)
			text.WriteByte(c)
		}
	}
	end()
	return words, open
}

// Unquoted returns the words without quotes.
func Unquoted(words []word) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = w.text
	}
	return list
}

// QuoteWord quotes a word such that SplitWords reads it back.
func QuoteWord(s string) string {
	if s != "" && !strings.HasPrefix(s, "#") && !strings.HasSuffix(s, ";") &&
		!strings.ContainsAny(s, " \t\r\n'\"\\") {
		return s
	}
	if !strings.ContainsAny(s, "\"\\$`") {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// guarded runs a function of the dialogue itself, such as completion. A panic in it
// must not end the shell and the open database; guarded reports it.
func (s *Shell) guarded(what string, f func()) {
	defer func() {
		if mistake := recover(); mistake != nil {
			s.out.Warnf("warning: %s failed: %v", what, mistake)
		}
	}()
	f()
}
