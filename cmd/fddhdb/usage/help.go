package usage

import (
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
)

// SetHelp gives a program its help: the texts of a verb with its examples, its verbs by group and its flags. heading
// stands over the flags and end behind them; both are templates of cobra. unknown is the error for a verb that does
// not exist. It returns the verb help, which is one more of the program.
func SetHelp(root *cobra.Command, heading, end string, unknown func(root *cobra.Command, word string) error) *cobra.Command {
	root.SetUsageTemplate(usageTemplate + heading + flagsTemplate + end + "\n")
	root.SetHelpTemplate("{{with or .Long .Short}}{{. | trimTrailingWhitespaces}}\n{{end}}{{.UsageString}}")
	help := helpCommand(unknown)
	root.SetHelpCommand(help)
	return help
}

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
				return found.Help()
			case err == nil && found != root:
				return exit.Usagef("help explains one verb at a time: %s help %s", root.Name(), args[0])
			}
			return unknown(root, args[0])
		},
	}
}

const usageTemplate = `
Usage:
  {{.UseLine}}
{{- if .HasExample}}

Examples:
{{.Example | trimTrailingWhitespaces}}
{{- end}}
{{- if .HasAvailableSubCommands}}
{{- $cmds := .Commands}}
{{- range $group := .Groups}}

{{.Title}}
{{- range $cmds}}{{if and (eq .GroupID $group.ID) (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding}}  {{.Short}}{{end}}{{end}}
{{- end}}
{{- if not .Groups}}

Available:
{{- range $cmds}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}}  {{.Short}}{{end}}{{end}}
{{- end}}
{{- end}}
{{- if .HasAvailableLocalFlags}}

`

const flagsTemplate = `
{{.LocalFlags.FlagUsagesWrapped 85 | trimTrailingWhitespaces}}
{{- end}}`
