package command

import (
	"io"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// An env is the surroundings of a verb. It belongs to the goroutine that runs the verb.
type env struct {
	*term.Printer
	stdin   io.Reader
	signals *shell.Signals // end the process; nil if nobody catches signals
	session *session       // session of the shell; nil outside of one
}

func (e *env) printError(err error) { e.Errorf("%s", exit.Message(err)) }
