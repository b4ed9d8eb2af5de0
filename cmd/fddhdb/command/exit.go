package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
)

// Exit codes.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitCorrupt = 3
)

// A usageError says that the command line is wrong, whatever is stored.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usageErrorf(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// A failure is an error that is not about the command line, although db calls it
// an invalid argument: it passed on what files hold or what is stored.
type failure struct{ err error }

func (e *failure) Error() string { return e.err.Error() }
func (e *failure) Unwrap() error { return e.err }

func failuref(format string, args ...any) error {
	return &failure{fmt.Errorf(format, args...)}
}

// exitCode is 2 where the command line has to change, 1 where something else has.
func exitCode(err error) int {
	var fail *failure
	var usage *usageError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, db.ErrCorrupt), errors.Is(err, backup.ErrDamaged):
		return exitCorrupt
	case errors.As(err, &fail):
		return exitFailed
	case errors.As(err, &usage), errors.Is(err, db.ErrInvalid), errors.Is(err, db.ErrNotDatabase):
		return exitUsage
	}
	return exitFailed
}

// message returns the text of an error for the user: without the prefix, which is put
// before it once, and with advice where stored data is damaged. An error with a method
// Worded returns its whole text by it; one with a method Advised says itself what to do.
func message(err error) string {
	var worded interface{ Worded() string }
	if errors.As(err, &worded) {
		return worded.Worded()
	}
	var parts []string
	for _, line := range strings.Split(err.Error(), "\n") { // of errors.Join
		if line = reason(line); line != "" && !slices.Contains(parts, line) {
			parts = append(parts, line)
		}
	}
	text := strings.Join(parts, "; ")
	if errors.Is(err, context.Canceled) {
		text = strings.ReplaceAll(text, context.Canceled.Error(), "interrupted")
	}
	var advised interface{ Advised() }
	if errors.Is(err, db.ErrStaged) {
		text += " (import --restart begins anew)"
	} else if errors.Is(err, db.ErrCorrupt) && !errors.As(err, &advised) && !errors.Is(err, backup.ErrDamaged) {
		text += ": the stored data is damaged: restore a backup, or let fddhdb repair save what can be saved"
	}
	return text
}

// reason takes off what only a caller of package db needs to read.
func reason(s string) string {
	s = strings.TrimPrefix(s, "fddhdb: ")
	s = strings.TrimPrefix(s, "invalid argument of a backup: ")
	return strings.TrimPrefix(s, "invalid argument: ")
}

// atRow says which row of a file an invalid vector is in.
func atRow(err error, path string, row int) error {
	if !errors.Is(err, db.ErrInvalid) {
		return err
	}
	return failuref("%s: row %d: %s", path, row, reason(err.Error()))
}

// wrap adds what to do to an error.
func wrap(err error, format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{err}, args...)...)
}
