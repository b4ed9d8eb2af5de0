package command

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/codec/vecfile"
	"github.com/fddhdb/fddhdb/db"
)

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

// names are the names of the labels, by their numbers.
func (s *labelSource) names() []string { return s.labels.Names }

// checkKnown refuses labels none of which is known to the database: all figures
// would be 0 without a word why.
func (s *labelSource) checkKnown(known []string, against string, hint bool) error {
	have := make(map[string]bool, len(known))
	for _, name := range known {
		have[name] = true
	}
	for _, name := range s.labels.Names {
		if have[name] {
			return nil
		}
	}
	if len(s.labels.Names) == 0 || len(known) == 0 {
		return nil
	}
	advice := ""
	if hint {
		advice = ": labels are compared by name, is --label-names missing?"
	}
	return exit.Failedf("%s has the labels %s, none of which %s has (%s)%s",
		s.file, listStart(s.labels.Names), against, listStart(known), advice)
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
