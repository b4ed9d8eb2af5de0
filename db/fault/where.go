package fault

import (
	"fmt"
)

// A WhereError says what is wrong with an expression of Query.Where and its like,
// and where. It is an ErrInvalid.
type WhereError struct {
	Column int    // of the first character in question, from 1; characters, not bytes
	Reason string // what is wrong there
}

// Error names the column and what is wrong there.
func (e *WhereError) Error() string {
	return fmt.Sprintf("%v: where: column %d: %s", ErrInvalid, e.Column, e.Reason)
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *WhereError) Is(target error) bool { return target == ErrInvalid }
