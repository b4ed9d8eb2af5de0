package fault

import (
	"fmt"
)

// A WhereError says what is wrong with an expression of Query.Where and its like,
// and where. It is an ErrInvalid.
type WhereError struct {
	Column int // of the first character in question, from 1
	Reason string
}

func (e *WhereError) Error() string {
	return fmt.Sprintf("%v: where: column %d: %s", ErrInvalid, e.Column, e.Reason)
}

// Is makes a WhereError an ErrInvalid.
func (e *WhereError) Is(target error) bool { return target == ErrInvalid }
