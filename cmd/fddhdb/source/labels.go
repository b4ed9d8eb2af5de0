package source

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/codec/vecfile"
	"github.com/fddhdb/fddhdb/db"
)

// Labels is a file of labels.
type Labels struct {
	file string
	read *vecfile.Labels
	row  int

	// Ordered says that the names have an order of their own, in which they are
	// registered whether or not they occur. Those of a text are registered as
	// they appear on items.
	Ordered bool
}

// OpenLabels reads labels; names, if not empty, is the file that names the
// columns of a matrix and the numbers of classes, or that puts the labels of a
// text in order.
func OpenLabels(file, names string) (*Labels, error) {
	labels, err := vecfile.ReadLabels(file)
	if err != nil {
		return nil, err
	}
	numbers := strings.ToLower(filepath.Ext(file)) == ".npy"
	s := &Labels{file: file, read: labels, Ordered: numbers || names != ""}
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
func (s *Labels) rename(file string, names []string) error {
	wrong := len(names) < len(s.read.Names)
	if !wrong && len(names) > len(s.read.Names) {
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
			file, term.Plural(len(names), "line", "lines"), s.file, len(s.read.Names)-1)
	}
	s.read.Names = names
	return nil
}

// reorder brings labels that have names into the order of a list.
func (s *Labels) reorder(file string, names []string) error {
	position := make(map[string]int, len(names))
	for i, name := range names {
		position[name] = i
	}
	moved := make([]int, len(s.read.Names))
	for i, name := range s.read.Names {
		p, ok := position[name]
		if !ok {
			return exit.Failedf("%s has the label %q, %s does not list it", s.file, name, file)
		}
		moved[i] = p
	}
	for _, set := range s.read.Sets {
		for i := range set {
			set[i] = moved[set[i]]
		}
	}
	s.read.Names = names
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

// Path implements Source, as do Rows, Close and next.
func (s *Labels) Path() string { return s.file }
func (s *Labels) Rows() int    { return len(s.read.Sets) }
func (s *Labels) Close() error { return nil }

func (s *Labels) next(item *db.Item) error {
	if s.row == len(s.read.Sets) {
		return io.EOF
	}
	item.Labels = s.At(s.row)
	s.row++
	return nil
}

// At returns the labels of a row, by number, so that they are registered in that
// order.
func (s *Labels) At(row int) []string {
	var names []string
	for _, i := range s.read.Sets[row] {
		names = append(names, s.read.Names[i])
	}
	return names
}

// All returns the labels of all rows.
func (s *Labels) All() [][]string {
	rows := make([][]string, len(s.read.Sets))
	for i := range rows {
		rows[i] = s.At(i)
	}
	return rows
}

// Names are the names of the labels, by their numbers.
func (s *Labels) Names() []string { return s.read.Names }

// CheckKnown refuses labels none of which is known to the database: all figures
// would be 0 without a word why.
func (s *Labels) CheckKnown(known []string, against string, hint bool) error {
	have := make(map[string]bool, len(known))
	for _, name := range known {
		have[name] = true
	}
	for _, name := range s.read.Names {
		if have[name] {
			return nil
		}
	}
	if len(s.read.Names) == 0 || len(known) == 0 {
		return nil
	}
	advice := ""
	if hint {
		advice = ": labels are compared by name, is --label-names missing?"
	}
	return exit.Failedf("%s has the labels %s, none of which %s has (%s)%s",
		s.file, listStart(s.read.Names), against, listStart(known), advice)
}

// listStart spells the first entries of a list.
func listStart(list []string) string {
	const most = 3
	s := ""
	for i, x := range list {
		if i == most {
			return s + ", ..."
		}
		if i > 0 {
			s += ", "
		}
		s += x
	}
	return s
}
