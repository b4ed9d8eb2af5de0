package command

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/codec/vecfile"
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

// sameRows checks that all files are about the same items.
func sameRows(sources []source) error {
	for _, s := range sources[1:] {
		if first := sources[0]; s.rows() != first.rows() {
			return exit.Failedf("%s has %s, %s has %s: row i of every file belongs to item i",
				first.path(), term.Plural(first.rows(), "row", "rows"), s.path(), term.Plural(s.rows(), "row", "rows"))
		}
	}
	return nil
}

// codeSource is a file of packed codes.
type codeSource struct {
	file  string
	codes codec.Codes
	row   int
}

func openCodes(file string) (*codeSource, error) {
	codes, err := vecfile.ReadCodes(file)
	return &codeSource{file: file, codes: codes}, err
}

func (s *codeSource) path() string { return s.file }
func (s *codeSource) rows() int    { return s.codes.Len() }
func (s *codeSource) close() error { return nil }

func (s *codeSource) next(item *db.Item) error {
	if s.row == s.codes.Len() {
		return io.EOF
	}
	item.Code = s.at(s.row)
	s.row++
	return nil
}

func (s *codeSource) at(row int) []byte {
	return s.codes.At(row).AppendBytes(nil, s.codes.Bits())
}

// checkBits holds the codes of the file against those of a collection.
func (s *codeSource) checkBits(c *db.Collection, bits int) error {
	if s.codes.Bits() != bits {
		return exit.Failedf("%s has codes of %d bits, collection %q has codes of %d", s.file, s.codes.Bits(), c.Name(), bits)
	}
	return nil
}

// labelSource is a file of labels.
type labelSource struct {
	file   string
	labels *vecfile.Labels
	row    int

	// ordered says that the names have an order of their own, in which they are
	// registered whether or not they occur. Those of a text are registered as
	// they appear on items.
	ordered bool
}

// openLabels reads labels; names, if not empty, is the file that names the
// columns of a matrix and the numbers of classes, or that puts the labels of a
// text in order.
func openLabels(file, names string) (*labelSource, error) {
	labels, err := vecfile.ReadLabels(file)
	if err != nil {
		return nil, err
	}
	numbers := strings.ToLower(filepath.Ext(file)) == ".npy"
	s := &labelSource{file: file, labels: labels, ordered: numbers || names != ""}
	if names == "" {
		return s, nil
	}
	list, err := readNames(names)
	if err != nil {
		return nil, err
	}
	if numbers {
		return s, s.rename(names, list)
	}
	return s, s.reorder(names, list)
}

// rename gives names to labels that are numbers so far.
func (s *labelSource) rename(file string, names []string) error {
	wrong := len(names) < len(s.labels.Names)
	if !wrong && len(names) > len(s.labels.Names) {
		// Classes may be missing at the end of a vector of classes, not columns of
		// a matrix.
		r, err := vecfile.Open(s.file)
		if err != nil {
			return err
		}
		wrong = r.Cols() > 1
		if err := r.Close(); err != nil {
			return err
		}
	}
	if wrong {
		return exit.Failedf("%s has %s, %s has labels 0 to %d: a line is needed for each",
			file, term.Plural(len(names), "line", "lines"), s.file, len(s.labels.Names)-1)
	}
	s.labels.Names = names
	return nil
}

// reorder brings labels that have names into the order of a list.
func (s *labelSource) reorder(file string, names []string) error {
	position := make(map[string]int, len(names))
	for i, name := range names {
		position[name] = i
	}
	moved := make([]int, len(s.labels.Names))
	for i, name := range s.labels.Names {
		p, ok := position[name]
		if !ok {
			return exit.Failedf("%s has the label %q, %s does not list it", s.file, name, file)
		}
		moved[i] = p
	}
	for _, set := range s.labels.Sets {
		for i := range set {
			set[i] = moved[set[i]]
		}
	}
	s.labels.Names = names
	return nil
}

// readNames reads the names of labels, one a line.
func readNames(file string) ([]string, error) {
	names, err := vecfile.ReadLines(file)
	if err != nil {
		return nil, err
	}
	lines := make(map[string]int, len(names))
	for i, name := range names {
		if name == "" {
			return nil, exit.Failedf("%s: line %d is empty: a label needs a name", file, i+1)
		}
		if first, ok := lines[name]; ok {
			return nil, exit.Failedf("%s: the label %q stands on line %d and on line %d", file, name, first, i+1)
		}
		lines[name] = i + 1
	}
	return names, nil
}

func (s *labelSource) path() string { return s.file }
func (s *labelSource) rows() int    { return len(s.labels.Sets) }
func (s *labelSource) close() error { return nil }

func (s *labelSource) next(item *db.Item) error {
	if s.row == len(s.labels.Sets) {
		return io.EOF
	}
	item.Labels = s.at(s.row)
	s.row++
	return nil
}

// at returns the labels of a row, by number, so that they are registered in that
// order.
func (s *labelSource) at(row int) []string {
	var names []string
	for _, i := range s.labels.Sets[row] {
		names = append(names, s.labels.Names[i])
	}
	return names
}

// all returns the labels of all rows.
func (s *labelSource) all() [][]string {
	rows := make([][]string, len(s.labels.Sets))
	for i := range rows {
		rows[i] = s.at(i)
	}
	return rows
}

// keySource is a file of keys.
type keySource struct {
	file string
	keys []string
	row  int
	line map[string]int // of the keys so far
}

func openKeys(file string) (*keySource, error) {
	keys, err := vecfile.ReadLines(file)
	return &keySource{file: file, keys: keys, line: make(map[string]int, len(keys))}, err
}

func (s *keySource) path() string { return s.file }
func (s *keySource) rows() int    { return len(s.keys) }
func (s *keySource) close() error { return nil }

func (s *keySource) next(item *db.Item) error {
	if s.row == len(s.keys) {
		return io.EOF
	}
	item.Key = s.keys[s.row]
	s.row++
	first, twice := s.line[item.Key]
	switch {
	case item.Key == "":
		return &rowError{fmt.Errorf("%s: line %d is empty: an item needs a key", s.file, s.row)}
	case len(item.Key) > db.MaxKeyBytes:
		return &rowError{fmt.Errorf("%s: line %d: a key of %d bytes, at most %d are possible", s.file, s.row, len(item.Key), db.MaxKeyBytes)}
	case twice:
		return &rowError{fmt.Errorf("%s: the key %q stands on line %d and on line %d", s.file, item.Key, first, s.row)}
	}
	s.line[item.Key] = s.row
	return nil
}
