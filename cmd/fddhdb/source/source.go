package source

import (
	"github.com/fddhdb/fddhdb/db"
)

// A Source is one file that a verb reads: its row i says something of item i.
type Source interface {
	Path() string
	Rows() int

	// next adds the next row to the item. An error of type *RowError costs that
	// row only; any other is final.
	next(item *db.Item) error

	Close() error
}

// A RowError is about one row of a file, after which the next can be read.
type RowError struct{ Err error }

func (e *RowError) Error() string { return e.Err.Error() }
func (e *RowError) Unwrap() error { return e.Err }
