package command

import (
	"io"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// An env is the surroundings of a verb.
type env struct {
	*term.Printer
	stdin   io.Reader
	signals *shell.Signals // that end the process, nil where nobody catches them
	session *session       // of the shell that it runs in, or nil
}

func (e *env) printError(err error) { e.Errorf("%s", exit.Message(err)) }
