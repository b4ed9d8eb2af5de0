package command

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
)

// whereFlag is --where, a flag of many verbs: an expression or nothing.
type whereFlag struct{ expr string }

func (w *whereFlag) register(cmd *cobra.Command) {
	what := "only items that match, see fddhdb help scan"
	if cmd.Name() == "scan" {
		what = "only items that match"
	}
	cmd.Flags().Var(w, "where", what)
}

func (w *whereFlag) String() string { return w.expr }
func (w *whereFlag) Type() string   { return "EXPR" }

// Set refuses an empty expression, which would match everything. Most likely a script
// has lost its value.
func (w *whereFlag) Set(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("an expression is expected, such as label = 'cat'")
	}
	w.expr = s
	return nil
}

// given reports whether there is an expression.
func (w *whereFlag) given() bool { return w.expr != "" }

// wrap turns an error about the expression into one about the flag.
func (w *whereFlag) wrap(err error) error {
	var bad *db.WhereError
	if errors.As(err, &bad) && strings.HasPrefix(bad.Reason, "placeholder ") {
		return exit.Usagef("--where: column %d: ? is for programs that embed a database: write the value, text in single quotes", bad.Column)
	}
	if errors.As(err, &bad) {
		return exit.Usagef("--where: column %d: %s", bad.Column, bad.Reason)
	}
	return err
}
