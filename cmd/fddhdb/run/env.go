package run

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// An Env is the surroundings of a verb. It belongs to the goroutine that runs the verb.
type Env struct {
	*term.Printer
	Stdin   io.Reader
	Signals *shell.Signals // end the process; nil if nobody catches signals
	Session *Session       // session of the shell; nil outside of one
	At      *Elsewhere     // the database of another program; nil in fddhdb

	NoAttach  bool          // a database that another process has open is an error
	Wait      time.Duration // for a process that has it open and serves nobody; 0: as attach.Options
	TokenFile string        // has the token for servers
}

// PrintError prints the message of an error to stderr.
func (e *Env) PrintError(err error) { e.Errorf("%s", exit.Message(err)) }

// Execute runs one command line, and completes its output.
func (e *Env) Execute(ctx context.Context, root *cobra.Command, args []string) error {
	root.SetArgs(append([]string{}, args...)) // with nil cobra would take the arguments of the process
	return e.Scope(func() error { return root.ExecuteContext(ctx) })
}

// Groups in which help lists the verbs.
const (
	GroupItems  = "items"
	GroupLearn  = "learn"
	GroupSpaces = "spaces"
	GroupLook   = "look"
	GroupServe  = "serve"
	GroupBackup = "backup"
	GroupOther  = "other"
)
