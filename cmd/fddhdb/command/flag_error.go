package command

import (
	"errors"

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
		return exit.Usagef("%s %q: %w", usage.Dashed(invalid.GetFlag()), invalid.GetValue(), errors.Unwrap(invalid))
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
