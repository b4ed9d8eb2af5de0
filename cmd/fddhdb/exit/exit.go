package exit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
)

// Exit codes of the process.
const (
	Done    = 0
	Failed  = 1
	Usage   = 2 // the command line was wrong
	Corrupt = 3 // stored data is damaged
)

// A usageError says that the command line is wrong, whatever is stored.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Usagef returns an error about a wrong command line.
func Usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// A Failure is an error that is not about the command line, although db calls it an
// invalid argument: the argument came from a file or from the database.
type Failure struct{ err error }

func (e *Failure) Error() string { return e.err.Error() }
func (e *Failure) Unwrap() error { return e.err }

// Failedf returns a Failure.
func Failedf(format string, args ...any) error {
	return &Failure{fmt.Errorf(format, args...)}
}

// Code returns the exit code of an error: Usage if the command line must change, Failed
// if something else must, Corrupt for damaged data.
func Code(err error) int {
	var fail *Failure
	var usage *usageError
	switch {
	case err == nil:
		return Done
	case errors.Is(err, db.ErrCorrupt), errors.Is(err, backup.ErrDamaged):
		return Corrupt
	case errors.As(err, &fail):
		return Failed
	case errors.As(err, &usage), errors.Is(err, db.ErrInvalid), errors.Is(err, db.ErrNotDatabase):
		return Usage
	}
	return Failed
}

// Message returns the text of an error for the user: with one prefix, and with advice
// if stored data is damaged. An error with a method Worded has its whole text from it.
// One with a method Advised gives the advice itself.
func Message(err error) string {
	var worded interface{ Worded() string }
	if errors.As(err, &worded) {
		return worded.Worded()
	}
	var parts []string
	for _, line := range strings.Split(err.Error(), "\n") { // of errors.Join
		if line = Reason(line); line != "" && !slices.Contains(parts, line) {
			parts = append(parts, line)
		}
	}
	text := strings.Join(parts, "; ")
	if errors.Is(err, context.Canceled) {
		text = strings.ReplaceAll(text, context.Canceled.Error(), "interrupted")
	}
	var advised interface{ Advised() }
	if errors.Is(err, db.ErrCorrupt) && !errors.As(err, &advised) && !errors.Is(err, backup.ErrDamaged) {
		text += ": the stored data is damaged: restore a backup, or let fddhdb repair save what can be saved"
	}
	return text
}

// Reason removes the parts of a text that only callers of package db need.
func Reason(s string) string {
	s = strings.TrimPrefix(s, "fddhdb: ")
	s = strings.TrimPrefix(s, "invalid argument of a backup: ")
	return strings.TrimPrefix(s, "invalid argument: ")
}

// AtRow adds the row of a file to the error of an invalid vector.
func AtRow(err error, path string, row int) error {
	if !errors.Is(err, db.ErrInvalid) {
		return err
	}
	return Failedf("%s: row %d: %s", path, row, Reason(err.Error()))
}

// Wrap adds advice to an error.
func Wrap(err error, format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{err}, args...)...)
}
