package usage

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// FlagError replaces the texts of pflag for an unknown flag and for a missing value by ones that begin with the
// flag and name no Go function. It leaves other errors as they are, those of bad values among them.
func FlagError(cmd *cobra.Command, err error) error {
	var missing *pflag.ValueRequiredError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &missing):
		return exit.Usagef("%s needs a value: %s explains", Dashed(missing.GetFlag()), helpFor(cmd))
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			return exit.Usagef("unknown flag -%s: %s explains", name, helpFor(cmd))
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := term.Nearest(name, names); near != "" {
			return exit.Usagef("unknown flag --%s: did you mean --%s?", name, near)
		}
		return exit.Usagef("unknown flag --%s: %s explains", name, helpFor(cmd))
	}
	return exit.Usagef("%w", err)
}

// AsKey returns the error of a flag that does not exist and is most likely a key that begins with -, as the verb takes
// keys; nil if it is none.
func AsKey(cmd *cobra.Command, err error) *pflag.NotExistError {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "" && strings.Contains(cmd.Use, "KEY") {
		return unknown
	}
	return nil
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
