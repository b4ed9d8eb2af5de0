package command

import (
	"github.com/fddhdb/fddhdb/db"
)

// A source is one file of an import: its row i says something of item i.
type source interface {
	path() string
	rows() int

	// next adds the next row to the item. An error of type *rowError costs that
	// row only; any other is final.
	next(item *db.Item) error

	close() error
}

// A rowError is about one row of a file, after which the next can be read.
type rowError struct{ err error }

func (e *rowError) Error() string { return e.err.Error() }
func (e *rowError) Unwrap() error { return e.err }
