package command

import (
	"fmt"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// A stagedError ends an import that the same command can continue.
type stagedError struct {
	err  error
	rows int // staged rows
}

func (e *stagedError) Error() string {
	return fmt.Sprintf("%v: %s are staged, and the same command goes on there", e.err, term.Plural(e.rows, "row", "rows"))
}

func (e *stagedError) Unwrap() error { return e.err }
