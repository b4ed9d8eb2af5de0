package command

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
)

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
