package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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

// message is the text of an error without the prefix, which is put before it
// once.
func message(err error) string {
	var at *lineError
	var inShell *shellError
	switch { // they are worded already
	case errors.As(err, &at):
		return at.Error()
	case errors.As(err, &inShell):
		return inShell.text
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
	var lost *notSavedError
	if errors.Is(err, db.ErrStaged) {
		text += " (import --restart begins anew)"
	} else if errors.Is(err, db.ErrCorrupt) && !errors.As(err, &lost) && !errors.Is(err, backup.ErrDamaged) {
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

// flagError rewords what pflag says: always the flag first, never a Go function.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &invalid):
		flag, cause := invalid.GetFlag(), errors.Unwrap(invalid)
		var number *strconv.NumError
		if errors.As(cause, &number) {
			cause = fmt.Errorf("not %s", valueKinds[flag.Value.Type()])
			if errors.Is(number.Err, strconv.ErrRange) {
				cause = errors.New("too large")
			}
		}
		return usageErrorf("%s %q: %w", dashed(flag), invalid.GetValue(), cause)
	case errors.As(err, &missing):
		return usageErrorf("%s needs a value: %s", dashed(missing.GetFlag()), helpFor(cmd))
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			return usageErrorf("unknown flag -%s: %s", name, helpFor(cmd))
		}
		if !cmd.HasParent() {
			return usageErrorf("unknown flag --%s: the verb comes first: fddhdb VERB DIR [flags]", name)
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if flag := nearest(name, names); flag != "" {
			return usageErrorf("unknown flag --%s: did you mean --%s?", name, flag)
		}
		return usageErrorf("unknown flag --%s: %s", name, helpFor(cmd))
	}
	return &usageError{err}
}

// valueKinds says what the flags of a type take.
var valueKinds = map[string]string{
	"int":     "a whole number",
	"uint":    "a whole number of 0 or more",
	"uint32":  "a whole number of 0 or more",
	"uint64":  "a whole number of 0 or more",
	"float64": "a number",
	"bool":    "true or false",
}

func dashed(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand
	}
	return "--" + f.Name
}

func helpFor(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return "fddhdb help explains"
	}
	return "fddhdb help " + cmd.Name() + " explains"
}

// nearest returns the name that a mistyped word most likely means; "" where none
// is close, more than a third of the word and at least two letters being wrong.
func nearest(word string, names []string) string {
	best, least := "", max(2, len(word)/3)+1
	for _, name := range names {
		d := editDistance(word, name)
		if d < least && d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// editDistance counts the letters to insert, delete, replace or swap with their
// neighbour that turn a into b.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			wrong := 1
			if a[i-1] == b[j-1] {
				wrong = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+wrong)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// wrap adds what to do to an error.
func wrap(err error, format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{err}, args...)...)
}
