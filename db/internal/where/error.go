package where

import "fmt"

// An Error says what is wrong with an expression, and where.
type Error struct {
	Column int // of the first character in question, from 1
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Reason) }
