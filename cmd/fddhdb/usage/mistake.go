package usage

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
		return exit.Usagef("unknown flag -%s: a key that begins with - stands behind --, as in %s %s -- -%s", name, cmd.CommandPath(), strings.Fields(cmd.Use)[1], short)
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
