package usage

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// A short help fits on a screen.
const (
	shortLines    = 30
	shortExamples = 3
	shortWidth    = 100
)

const matters = "matters"

// Matter names the flags of a verb that its short help shows. Without it that shows the first ones.
func Matter(f *pflag.FlagSet, names ...string) {
	for _, name := range names {
		if err := f.SetAnnotation(name, matters, nil); err != nil {
			panic(err) // there is no such flag
		}
	}
}

// shortText is what a verb, or the program, shows with -h.
func shortText(c *cobra.Command) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s.", strings.TrimSuffix(c.Short, "."))
	line("\nUsage:\n%s", cut("  "+strings.TrimSpace(c.UseLine())))
	if all := examples(c.Example); len(all) > 0 {
		line("\nExamples:\n%s", strings.Join(all[:min(shortExamples, len(all))], "\n"))
	}
	if c.HasAvailableSubCommands() {
		line("")
		groups := c.Groups()
		if len(groups) == 0 {
			groups = []*cobra.Group{{Title: "Verbs:"}}
		}
		for _, group := range groups {
			var names []string
			for _, verb := range c.Commands() {
				if verb.GroupID == group.ID && (verb.IsAvailableCommand() || verb.Name() == "help") {
					names = append(names, verb.Name())
				}
			}
			line("%s\n  %s", group.Title, strings.Join(names, ", "))
		}
	}
	name, verb, _ := strings.Cut(c.CommandPath(), " ")
	more := fmt.Sprintf("\n%s explains it", strings.TrimSpace(name+" help "+verb))
	if verb == "" {
		more += ", " + name + " help VERB a verb"
	}
	room := shortLines - strings.Count(b.String(), "\n") - strings.Count(more, "\n") - len("\n\n") - 1
	shown, hidden := flagsThatMatter(c, room)
	if shown != "" {
		line("\nFlags:\n%s", shown)
	}
	if hidden > 0 {
		more += ", with " + term.Plural(hidden, "more flag", "more flags")
	}
	return b.String() + more + ".\n"
}

// flagsThatMatter returns lines of flags, no more than room, and how many flags are not among them.
func flagsThatMatter(c *cobra.Command, room int) (lines string, hidden int) {
	marked := false
	c.LocalFlags().VisitAll(func(f *pflag.Flag) { _, m := f.Annotations[matters]; marked = marked || m })
	some := pflag.NewFlagSet("", pflag.ContinueOnError)
	n := 0
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		_, m := f.Annotations[matters]
		switch {
		case f.Hidden || f.Name == "help":
		case n == room || marked && !m:
			hidden++
		default:
			some.AddFlag(f)
			n++
		}
	})
	all := strings.Split(trimEnd(some.FlagUsages()), "\n")
	for i := range all {
		all[i] = cut(all[i])
	}
	return strings.Join(all, "\n"), hidden
}

// examples returns the commands of an example text, each with the lines that it goes on in.
func examples(text string) (all []string) {
	goesOn := false
	for line := range strings.Lines(trimEnd(text)) {
		line = strings.TrimRight(line, "\n")
		words := strings.TrimSpace(line)
		switch {
		case goesOn:
			all[len(all)-1] += "\n" + line
		case words != "" && !strings.HasSuffix(words, ":") && !strings.HasSuffix(words, ","): // not prose
			all = append(all, line)
		}
		goesOn = strings.HasSuffix(words, "\\")
	}
	return all
}

// cut ends a line where it gets too long, behind a word.
func cut(line string) string {
	if len(line) <= shortWidth {
		return line
	}
	at := strings.LastIndexByte(line[:shortWidth-len(" ...")], ' ')
	return strings.TrimRight(line[:at], " ,;:") + " ..."
}
