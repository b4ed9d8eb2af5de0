package source

import (
	"errors"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files"
)

// A Source is one file of a verb. Its row i is about item i.
type Source interface {
	Path() string
	Rows() int

	// next adds the next row to the item. An error of type *RowError costs only that row; any other error is
	// final.
	next(item *db.Item) error

	Close() error
}

// A RowError is an error of one row of a file. The next row can still be read.
type RowError struct{ Err error }

// ofRow returns an error of a file as a RowError if it costs only a row.
func ofRow(err error) error {
	var bad *files.Error
	if errors.As(err, &bad) && bad.Row >= 0 {
		return &RowError{err}
	}
	return err
}

func (e *RowError) Error() string { return e.Err.Error() }
func (e *RowError) Unwrap() error { return e.Err }
