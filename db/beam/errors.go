package beam

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/fault"
)

// An InputError says what is wrong with the files that a pipeline reads, or in the folder that it writes to:
// another try would find the same. It may wrap a db.ErrInvalid of an argument that such a file has given;
// without an InputError around it, a db.ErrInvalid is about an argument of the caller.
type InputError struct{ err error }

func (e *InputError) Error() string { return e.err.Error() }
func (e *InputError) Unwrap() error { return e.err }

func inputError(format string, args ...any) error { return &InputError{fmt.Errorf(format, args...)} }

// reason returns the text of an error on one line, without the words that only those who call package db
// need. It stands in files, and in what a task says.
func reason(err error) string {
	var parts []string
	for line := range strings.SplitSeq(err.Error(), "\n") { // of errors.Join
		for _, is := range []error{fault.ErrInvalid, backup.ErrInvalid} {
			line = strings.TrimPrefix(line, is.Error()+": ")
		}
		if line = strings.TrimPrefix(line, "fddhdb: "); line != "" && !slices.Contains(parts, line) {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}
