package usage

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// SetHelp gives a program its help. With -h a verb shows the usage, some examples and the flags that matter,
// on a screen. The verb help shows the text of a verb with all of these, its verbs by group and its flags.
// heading stands over the flags of the program itself. anyVerb names flags that go with each verb, and stands
// behind the verb's own. unknown is the error for a verb that does not exist. SetHelp returns the verb help,
// which is one more of the program.
//
// cobra would write all this by a template. A program with a template keeps every exported method of every
// type that it links, as the template might call it.
func SetHelp(root *cobra.Command, heading, anyVerb string,
	unknown func(root *cobra.Command, word string) error) *cobra.Command {
	root.SetUsageFunc(func(c *cobra.Command) error {
		_, err := io.WriteString(c.OutOrStderr(), usageText(c, heading, anyVerb))
		return err
	})
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if len(args) == 0 || args[0] != whole {
			fmt.Fprint(c.OutOrStdout(), shortText(c))
			return
		}
		if text := cmp.Or(c.Long, c.Short); text != "" {
			fmt.Fprintln(c.OutOrStdout(), trimEnd(text))
		}
		fmt.Fprint(c.OutOrStdout(), c.UsageString())
	})
	help := helpCommand(unknown)
	root.SetHelpCommand(help)
	return help
}

// whole asks a function of help for all that there is. No argument of a command line is like it.
const whole = "\x00"

// helpCommand is cobra's own, except for the exit code if the verb does not exist.
func helpCommand(unknown func(root *cobra.Command, word string) error) *cobra.Command {
	return &cobra.Command{
		Use:   "help [VERB]",
		Short: "Explain a verb",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			found, rest, err := root.Find(args)
			switch {
			case err == nil && len(rest) == 0:
				found.InitDefaultHelpFlag()
				found.HelpFunc()(found, []string{whole})
				return nil
			case err == nil && found != root:
				return exit.Usagef("help explains one verb at a time: %s help %s", root.Name(), args[0])
			}
			return unknown(root, args[0])
		},
	}
}

// usageText says how a verb is called, with examples, the verbs below it and its flags.
func usageText(c *cobra.Command, heading, anyVerb string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nUsage:\n  %s\n", strings.TrimSpace(c.UseLine()))
	if c.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", trimEnd(c.Example))
	}
	if c.HasAvailableSubCommands() {
		verbsText(&b, c)
	}
	if c.HasAvailableLocalFlags() {
		if c.HasParent() {
			heading = "Flags:"
		}
		fmt.Fprintf(&b, "\n%s\n%s\n", heading, trimEnd(c.LocalFlags().FlagUsagesWrapped(85)))
	}
	if c.HasParent() && !c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nWith any verb: %s\n", anyVerb)
	}
	return b.String()
}

// verbsText lists the verbs below c, by group where there are groups.
func verbsText(b *strings.Builder, c *cobra.Command) {
	groups := c.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Available:"}}
	}
	for _, group := range groups {
		fmt.Fprintf(b, "\n%s\n", group.Title)
		for _, verb := range c.Commands() {
			if verb.GroupID == group.ID && (verb.IsAvailableCommand() || verb.Name() == "help") {
				fmt.Fprintf(b, "  %-*s  %s\n", verb.NamePadding(), verb.Name(), verb.Short)
			}
		}
	}
}

func trimEnd(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) }

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

// FlagError replaces the texts of pflag for mistakes with flags by ones that begin with the flag and name no
// Go function.
func FlagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &invalid):
		flag, cause := invalid.GetFlag(), errors.Unwrap(invalid)
		var number *strconv.NumError
		switch kind := valueKinds[flag.Value.Type()]; {
		case errors.As(cause, &number) && errors.Is(number.Err, strconv.ErrRange):
			cause = errors.New("too large")
		case kind != "":
			cause = fmt.Errorf("not %s", kind)
		}
		return exit.Usagef("%s %q: %w", Dashed(flag), invalid.GetValue(), cause)
	case errors.As(err, &missing):
		return exit.Usagef("%s needs a value: %s explains", Dashed(missing.GetFlag()), helpFor(cmd))
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	}
	return exit.Usagef("%w", err)
}

// unknownFlag returns the error of a flag that does not exist.
func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	name, short := unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames()
	switch {
	case short != "" && strings.Contains(cmd.Use, "KEY"): // most likely it is a key that begins with -
		return exit.Usagef("unknown flag -%s: a key that begins with - stands behind --, as in %s %s -- -%s",
			name, cmd.CommandPath(), strings.Fields(cmd.Use)[1], short)
	case short != "":
		return exit.Usagef("unknown flag -%s: %s explains", name, helpFor(cmd))
	case !cmd.HasParent():
		return exit.Usagef("unknown flag --%s: the verb comes first: %s", name, cmd.Use)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := term.Nearest(name, names); near != "" {
		return exit.Usagef("unknown flag --%s: did you mean --%s?", name, near)
	}
	return exit.Usagef("unknown flag --%s: %s explains", name, helpFor(cmd))
}

// valueKinds describe the values of flags by type.
var valueKinds = map[string]string{
	"int":      "a whole number",
	"uint":     "a whole number of 0 or more",
	"uint32":   "a whole number of 0 or more",
	"uint64":   "a whole number of 0 or more",
	"float32":  "a number",
	"float64":  "a number",
	"bool":     "true or false",
	"duration": "a time, such as 500ms or 10s",
}

// Dashed is a flag as it stands in a command line.
func Dashed(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand
	}
	return "--" + f.Name
}

// helpFor is the command line that explains a verb.
func helpFor(cmd *cobra.Command) string {
	help := cmd.Root().Name() + " help"
	if cmd.HasParent() {
		help += " " + cmd.Name()
	}
	return help
}

// Prose removes the indentation of the source from a help text.
func Prose(s string) string {
	lines := strings.Split(strings.Trim(s, "\n"), "\n")
	indent := len(lines[0]) - len(strings.TrimLeft(lines[0], "\t"))
	for i, line := range lines {
		for n := 0; n < indent && strings.HasPrefix(line, "\t"); n++ {
			line = line[1:]
		}
		lines[i] = strings.TrimRight(line, " \t")
	}
	return strings.Join(lines, "\n")
}

// Example is Prose, indented.
func Example(s string) string {
	return "  " + strings.ReplaceAll(strings.ReplaceAll(Prose(s), "\n", "\n  "), "\n  \n", "\n\n")
}
