package where

import "fmt"

// An Error is an error in an expression, with its place.
type Error struct {
	Column int    // of the first wrong character, from 1; characters, not bytes
	Reason string // what is wrong, and mostly what is possible instead
}

// Error names the column and what is wrong there. Package search makes a fault.WhereError of
// it before a user sees it.
func (e *Error) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Reason) }
