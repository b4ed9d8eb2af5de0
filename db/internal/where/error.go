package where

import "fmt"

// An Error is an error in an expression, with its place.
type Error struct {
	Column int // of the first wrong character, from 1
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Reason) }
