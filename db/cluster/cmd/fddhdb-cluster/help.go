package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// prose removes the indentation of the source from a help text.
func prose(s string) string {
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

// example is prose, indented.
func example(s string) string {
	return "  " + strings.ReplaceAll(strings.ReplaceAll(prose(s), "\n", "\n  "), "\n  \n", "\n\n")
}

// splitList splits a,b,... without surrounding blanks and empty entries.
func splitList(s string) (list []string) {
	for _, f := range strings.Split(s, ",") {
		if f = strings.TrimSpace(f); f != "" {
			list = append(list, f)
		}
	}
	return list
}

// flagError rewords errors of pflag: the flag comes first, and no Go function is named.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &invalid):
		flag, cause := invalid.GetFlag(), errors.Unwrap(invalid)
		var number *strconv.NumError
		switch {
		case errors.As(cause, &number) && errors.Is(number.Err, strconv.ErrRange):
			cause = errors.New("too large")
		case errors.As(cause, &number):
			cause = errors.New("a number is expected")
		case flag.Value.Type() == "duration":
			cause = errors.New("a time is expected, such as 500ms or 10s")
		}
		return exit.Usagef("--%s %q: %w", flag.Name, invalid.GetValue(), cause)
	case errors.As(err, &missing):
		return exit.Usagef("--%s needs a value: %s explains", missing.GetFlag().Name, helpOf(cmd))
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			if strings.Contains(cmd.Use, "KEY") {
				return exit.Usagef("unknown flag -%s: a key that begins with - stands behind --", name)
			}
			return exit.Usagef("unknown flag -%s: %s explains", name, helpOf(cmd))
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := term.Nearest(name, names); near != "" {
			return exit.Usagef("unknown flag --%s: did you mean --%s?", name, near)
		}
		return exit.Usagef("unknown flag --%s: %s explains", name, helpOf(cmd))
	}
	return exit.Usagef("%w", err)
}

func helpOf(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return "fddhdb-cluster help"
	}
	return "fddhdb-cluster help " + cmd.Name()
}

// verbsElsewhere are names of verbs in other tools.
var verbsElsewhere = map[string]string{
	"add": "put", "set": "put", "insert": "put", "upsert": "put", "load": "import", "show": "get", "cat": "get", "fetch": "get",
	"list": "collections", "ls": "collections", "find": "search", "query": "search", "remove": "delete", "rm": "delete", "del": "delete",
	"info": "status", "stats": "status", "nodes": "status", "shards": "status", "start": "node", "serve": "node", "run": "node", "new": "create",
	"models": "spaces", "rebalance": "move", "split": "grow", "reshard": "grow", "double": "grow",
}

// unknownVerb returns the error for a verb that does not exist.
func unknownVerb(root *cobra.Command, word string) error {
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	verb := verbsElsewhere[strings.ToLower(word)]
	if verb == "" {
		verb = term.Nearest(strings.ToLower(word), names)
	}
	if verb != "" {
		return exit.Usagef("there is no verb %q: did you mean %s?", word, verb)
	}
	return exit.Usagef("there is no verb %q: fddhdb-cluster help lists the verbs", word)
}

func helpCommand() *cobra.Command {
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
				return exit.Usagef("help explains one verb at a time: fddhdb-cluster help %s", args[0])
			}
			return unknownVerb(root, args[0])
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
{{- end}}
{{- if .HasAvailableLocalFlags}}

Flags{{if not .HasParent}} of every verb{{end}}:
{{.LocalFlags.FlagUsagesWrapped 85 | trimTrailingWhitespaces}}
{{- end}}
{{- if .HasParent}}

With any verb: --servers, --cluster, --creds, --tls-ca, --tls-cert, --tls-key, --insecure,
--timeout, --json: fddhdb-cluster help
{{- end}}
`

// A size is the value of a flag: a number of bytes, with a unit or without.
type size int64

func (s *size) Type() string { return "SIZE" }

func (s *size) String() string {
	for _, u := range sizeUnits {
		if n := int64(*s); n > 0 && n%u.bytes == 0 {
			return fmt.Sprint(n/u.bytes, u.name)
		}
	}
	return fmt.Sprint(int64(*s))
}

// sizeUnits are the units that String chooses from, the largest first.
var sizeUnits = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}}

func (s *size) Set(text string) error {
	number, unit := strings.TrimSpace(text), int64(1)
	for _, u := range sizeUnits {
		if rest, is := strings.CutSuffix(strings.ToLower(number), strings.ToLower(u.name)); is {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n > 0) || n*float64(unit) > 1<<60 {
		return errors.New("a number of bytes is expected, such as 256MiB or 1GiB")
	}
	*s = size(n * float64(unit))
	return nil
}
