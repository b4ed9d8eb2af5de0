package usage

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
)

// SetHelp gives a program its help. With -h a verb shows the usage, some examples and the flags that matter,
// on a screen. The verb help shows the text of a verb with all of these, its verbs by group and its flags.
// heading stands over the flags of the program itself. anyVerb names flags that go with each verb, and stands
// behind the verb's own. unknown is the error for a verb that does not exist. SetHelp returns the verb help,
// which is one more of the program.
//
// cobra would write all this by a template. A program with a template keeps every exported method of every
// type that it links, as the template might call it.
func SetHelp(root *cobra.Command, heading, anyVerb string, unknown func(root *cobra.Command, word string) error) *cobra.Command {
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
