package command

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
)

// flagError rewords errors of pflag: see usage.FlagError.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	if errors.As(err, &invalid) {
		flag, cause := invalid.GetFlag(), errors.Unwrap(invalid)
		var number *strconv.NumError
		if errors.As(cause, &number) {
			cause = fmt.Errorf("not %s", valueKinds[flag.Value.Type()])
			if errors.Is(number.Err, strconv.ErrRange) {
				cause = errors.New("too large")
			}
		}
		return exit.Usagef("%s %q: %w", usage.Dashed(flag), invalid.GetValue(), cause)
	}
	if key := usage.AsKey(cmd, err); key != nil {
		return exit.Usagef("unknown flag -%s: a key that begins with - stands behind --, as in fddhdb %s DIR -- -%s",
			key.GetSpecifiedName(), cmd.Name(), key.GetSpecifiedShortnames())
	}
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" && !cmd.HasParent() {
		return exit.Usagef("unknown flag --%s: the verb comes first: fddhdb VERB DIR [flags]", unknown.GetSpecifiedName())
	}
	return usage.FlagError(cmd, err)
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
