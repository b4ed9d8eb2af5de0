package command

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

// flagError rewords errors of pflag: the flag comes first, and no Go function is named.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &invalid):
		flag, cause := invalid.GetFlag(), errors.Unwrap(invalid)
		var number *strconv.NumError
		if errors.As(cause, &number) {
			cause = fmt.Errorf("not %s", valueKinds[flag.Value.Type()])
			if errors.Is(number.Err, strconv.ErrRange) {
				cause = errors.New("too large")
			}
		}
		return exit.Usagef("%s %q: %w", dashed(flag), invalid.GetValue(), cause)
	case errors.As(err, &missing):
		return exit.Usagef("%s needs a value: %s", dashed(missing.GetFlag()), helpFor(cmd))
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" && strings.Contains(cmd.Use, "KEY") {
			return exit.Usagef("unknown flag -%s: a key that begins with - stands behind --, as in fddhdb %s DIR -- -%s", name, cmd.Name(), unknown.GetSpecifiedShortnames())
		}
		if unknown.GetSpecifiedShortnames() != "" {
			return exit.Usagef("unknown flag -%s: %s", name, helpFor(cmd))
		}
		if !cmd.HasParent() {
			return exit.Usagef("unknown flag --%s: the verb comes first: fddhdb VERB DIR [flags]", name)
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if flag := term.Nearest(name, names); flag != "" {
			return exit.Usagef("unknown flag --%s: did you mean --%s?", name, flag)
		}
		return exit.Usagef("unknown flag --%s: %s", name, helpFor(cmd))
	}
	return exit.Usagef("%w", err)
}

// valueKinds describe the values of flags by type.
var valueKinds = map[string]string{
	"int":     "a whole number",
	"uint":    "a whole number of 0 or more",
	"uint32":  "a whole number of 0 or more",
	"uint64":  "a whole number of 0 or more",
	"float32": "a number",
	"float64": "a number",
	"bool":    "true or false",
}

func dashed(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand
	}
	return "--" + f.Name
}

func helpFor(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return "fddhdb help explains"
	}
	return "fddhdb help " + cmd.Name() + " explains"
}
