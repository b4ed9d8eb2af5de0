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
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// common are flags that most verbs have.
type common struct {
	collection string
	space      spaceFlag // not registered if the verb reads no codes
	json       bool
}

// register adds the flags to a verb.
func (o *common) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.collection, "collection", "main", "the collection `NAME` to work on")
	o.registerJSON(cmd)
}

func (o *common) registerJSON(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
}

// registerSpace adds --space to a verb that reads codes.
func (o *common) registerSpace(cmd *cobra.Command) {
	o.space.register(cmd, "look at the codes of space `N` (default: the active one)")
}

// dirArg accepts the folder of a database as the only argument.
func dirArg(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return exit.Usagef("%s needs the folder of a database: fddhdb %s", cmd.Name(), cmd.Use)
	case len(args) > 1:
		return exit.Usagef("%s does not know what to do with %q: fddhdb %s", cmd.Name(), args[1], cmd.Use)
	}
	return nil
}

// dirAndKeys accepts a folder and from least to most keys. A most of 0 means any
// number.
func dirAndKeys(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 || args[0] == "":
			return exit.Usagef("%s needs the folder of a database: fddhdb %s", cmd.Name(), cmd.Use)
		case len(args)-1 < least:
			return exit.Usagef("%s needs the key of an item: fddhdb %s", cmd.Name(), cmd.Use)
		case most > 0 && len(args)-1 > most:
			return exit.Usagef("%s does not know what to do with %q: fddhdb %s", cmd.Name(), args[most+1],
				cmd.Use)
		}
		for _, key := range args[1:] {
			if key == "" || len(key) > db.MaxKeyBytes {
				return exit.Usagef("the key %.40q: keys have 1 to %d bytes", key, db.MaxKeyBytes)
			}
		}
		return nil
	}
}

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

// strip removes those parts of the items of an answer that --include does not name. A contact sheet reads
// more parts than are printed.
func strip(r *db.Result, include db.Include) {
	for i := range r.Hits {
		it := r.Hits[i].Item
		if include == 0 {
			r.Hits[i].Item = nil
		} else if it != nil {
			if include&db.IncludeLabels == 0 {
				it.Labels = nil
			}
			if include&db.IncludeFields == 0 {
				it.Fields = nil
			}
			if include&db.IncludePayload == 0 {
				it.Payload = nil
			}
		}
	}
}

// spaceFlag is --space. The zero value, for verbs without the flag, means the active
// space.
type spaceFlag struct {
	n   db.Space
	cmd *cobra.Command
}

func (s *spaceFlag) register(cmd *cobra.Command, usage string) {
	s.cmd = cmd
	cmd.Flags().Uint32Var((*uint32)(&s.n), "space", 0, usage)
}

func (s *spaceFlag) given() bool { return s.cmd != nil && s.cmd.Flags().Changed("space") }

// in returns the collection in the space.
func (s *spaceFlag) in(c *db.Collection) (*db.Collection, error) {
	if !s.given() {
		return c, nil
	}
	if s.n == 0 {
		return nil, exit.Usagef("--space 0: spaces are numbered from 1; without the flag it is the active one")
	}
	in, err := c.InSpace(s.n)
	if errors.Is(err, db.ErrNotFound) {
		err = exit.Usagef("--space %d: %s", s.n, exit.Reason(err.Error()))
	}
	return in, err
}

// check refuses a space that does not exist. A space that is being built exists.
func (s *spaceFlag) check(c *db.Collection) error {
	_, err := s.in(c)
	if errors.Is(err, db.ErrBusy) {
		return nil
	}
	return err
}

// targetFlag is --to, for verbs that print no items.
type targetFlag struct{ to string }

func (t *targetFlag) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.to, "to", "", "find items that have the modality `NAME`")
}

// checkTarget refuses a --to that is no modality.
func checkTarget(c *db.Collection, schema db.Schema, to string) error {
	if to == "" {
		return nil
	}
	_, err := source.FindModality(c.Name(), schema, "--to", to)
	return err
}
