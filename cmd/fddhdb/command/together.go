package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// together are files whose rows belong together: row i of each is about item i.
type together []source

// sameRows checks that all files are about the same items.
func (in together) sameRows() error {
	for _, s := range in[1:] {
		if first := in[0]; s.rows() != first.rows() {
			return exit.Failedf("%s has %s, %s has %s: row i of every file belongs to item i",
				first.path(), term.Plural(first.rows(), "row", "rows"), s.path(), term.Plural(s.rows(), "row", "rows"))
		}
	}
	return nil
}

// close closes all files.
func (in together) close() {
	for _, s := range in {
		_ = s.close() // they have only been read
	}
}

// names names all files.
func (in together) names() string {
	var names []string
	for _, s := range in {
		names = append(names, s.path())
	}
	return strings.Join(names, ", ")
}

// rows is how many there are, -1 if that is not known before they are read.
func (in together) rows() int { return in[0].rows() }

// newRow returns an item for sources to add rows to.
func newRow() db.Item {
	return db.Item{Vectors: map[string][]float32{}, Sparse: map[string]db.Sparse{}}
}

// read reads the next row of all files. All are read even if one is bad, so that
// they stay side by side.
func (in together) read(item *db.Item) error {
	clear(item.Vectors)
	clear(item.Sparse)
	item.Key = ""
	var bad error
	for _, s := range in {
		err := s.next(item)
		var row *rowError
		if err != nil && !errors.As(err, &row) {
			return fmt.Errorf("%w; nothing of it was stored", err)
		}
		if bad == nil {
			bad = err
		}
	}
	return bad
}
