package rows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files"
)

// A Source is one file of an import, or a folder. Its row i is about item i.
type Source interface {
	Path() string
	Rows() int // -1: not known before they are read

	// Next adds the next row to the item, and returns io.EOF after the last. An error of type *Error costs
	// only that row; any other error is final.
	Next(item *db.Item) error

	Close() error
}

// What a Source may have besides.
type (
	skipper interface {
		Skip(ctx context.Context, n int) error
	} // leaves out the next n rows
	repeater interface{ Repeats() bool }       // an earlier row has the key of the last one
	namer    interface{ Name(row int) string } // what errors call a row
)

// An Error is an error of one row. The next row can still be read.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Errors of rows that are no mistakes: each is left out and counted.
var (
	ErrDuplicate = &Error{errors.New("an earlier row has its key")} // that one is stored
	ErrUnchanged = &Error{errors.New("the item is stored already")}
)

// Of returns an error of a file as an Error if it costs only a row.
func Of(err error) error {
	var bad *files.Error
	if errors.As(err, &bad) && bad.Row >= 0 {
		return &Error{err}
	}
	return err
}

// Together are sources that belong together.
type Together []Source

// Close closes all sources.
func (in Together) Close() {
	for _, s := range in {
		_ = s.Close() // nothing was written
	}
}

// Names returns the names of all sources.
func (in Together) Names() string {
	var names []string
	for _, s := range in {
		names = append(names, s.Path())
	}
	return strings.Join(names, ", ")
}

// Rows returns the number of rows, -1 if it is not known before they are read.
func (in Together) Rows() int { return in[0].Rows() }

// invalid returns the error of a row that the database has refused as invalid.
func (in Together) invalid(row int, err error) error {
	place := fmt.Sprint("row ", row)
	if s, ok := in[0].(namer); ok {
		place = strconv.Quote(s.Name(row))
	}
	reason := strings.TrimPrefix(err.Error(), db.ErrInvalid.Error()+": ")
	return &Error{fmt.Errorf("%s: %s: %s", in.Names(), place, reason)}
}

// NewItem returns an item for sources to add rows to.
func NewItem() db.Item {
	return db.Item{Vectors: map[string][]float32{}, Sparse: map[string]db.Sparse{}}
}

// read reads the next row of all sources. It reads all of them even if one is bad, so that they stay in step.
func (in Together) read(item *db.Item) error {
	clear(item.Vectors)
	clear(item.Sparse)
	item.Key = ""
	var bad error
	named := len(in) == 1 // bad names the key, or the source does
	for _, s := range in {
		err := s.Next(item)
		var row *Error
		if err != nil && !errors.As(err, &row) {
			return fmt.Errorf("%w; nothing of it was stored", err)
		}
		if _, ofKeys := s.(repeater); bad == nil && err != nil {
			bad, named = err, named || ofKeys
		}
	}
	if bad != nil && !named && item.Key != "" {
		return &Error{fmt.Errorf("%w (key %q)", bad, item.Key)}
	}
	return bad
}

// repeats reports whether an earlier row has the key of the row that was read last.
func (in Together) repeats() bool {
	return slices.ContainsFunc(in, func(s Source) bool {
		x, ok := s.(repeater)
		return ok && x.Repeats()
	})
}
