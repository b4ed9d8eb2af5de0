package source

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// Together are files that belong together: row i of each is about item i.
type Together []Source

// SameRows checks that all files have the same number of rows.
func (in Together) SameRows() error {
	for _, s := range in[1:] {
		if first := in[0]; s.Rows() != first.Rows() {
			return exit.Failedf("%s has %s, %s has %s: row i of every file belongs to item i",
				first.Path(), term.Plural(first.Rows(), "row", "rows"), s.Path(), term.Plural(s.Rows(), "row", "rows"))
		}
	}
	return nil
}

// Close closes all files.
func (in Together) Close() {
	for _, s := range in {
		_ = s.Close() // nothing was written
	}
}

// Names returns the names of all files.
func (in Together) Names() string {
	var names []string
	for _, s := range in {
		names = append(names, s.Path())
	}
	return strings.Join(names, ", ")
}

// Rows returns the number of rows, -1 if it is not known before they are read.
func (in Together) Rows() int { return in[0].Rows() }

// NewRow returns an item for sources to add rows to.
func NewRow() db.Item {
	return db.Item{Vectors: map[string][]float32{}, Sparse: map[string]db.Sparse{}}
}

// read reads the next row of all files. It reads all of them even if one is bad, so that they stay in step.
func (in Together) read(item *db.Item) error {
	clear(item.Vectors)
	clear(item.Sparse)
	item.Key = ""
	var bad error
	for _, s := range in {
		err := s.next(item)
		var row *RowError
		if err != nil && !errors.As(err, &row) {
			return fmt.Errorf("%w; nothing of it was stored", err)
		}
		if bad == nil {
			bad = err
		}
	}
	return bad
}
