package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// whereFlag is --where, a flag of many verbs.
type whereFlag struct{ flags.Where }

func (w *whereFlag) register(cmd *cobra.Command) {
	what := "only items that match, see fddhdb help scan"
	if cmd.Name() == "scan" {
		what = "only items that match"
	}
	cmd.Flags().Var(&w.Where, "where", what)
}

// warnOfLabels warns of labels in the expression that no item of a collection has: most
// likely they are mistyped, and the answer is empty.
func (w *whereFlag) warnOfLabels(e *env, c *db.Collection) {
	asked := shell.LabelsIn(w.Expr)
	if len(asked) == 0 {
		return
	}
	there, err := c.Labels()
	if err != nil {
		return // the verb meets the error, too
	}
	for _, label := range asked {
		if slices.Contains(there, label) {
			continue
		}
		text := fmt.Sprintf("warning: --where: label '%s': no item has it", term.Plain(label))
		if near := term.Nearest(label, there); near != "" {
			text += fmt.Sprintf("; did you mean '%s'?", term.Plain(near))
		}
		e.Warnf("%s", text)
	}
}

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
