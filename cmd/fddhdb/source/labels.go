package source

import (
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/importer"
	"github.com/fddhdb/fddhdb/files"
)

// Labels is a file of labels.
type Labels struct {
	listed
	read *files.Labels

	// Ordered says that the names have a given order, in which they are registered whether they occur or not.
	// Names of a text without such an order are registered as they appear on items.
	Ordered bool
}

// OpenLabels reads labels. names, if not empty, is a file that names the columns of a matrix or the numbers
// of classes, or that orders the labels of a text.
func OpenLabels(file, names string) (*Labels, error) {
	labels, err := importer.ReadLabels(file)
	if err != nil {
		return nil, err
	}
	s := &Labels{read: labels, Ordered: labels.Numbers || names != ""}
	s.listed = listed{file: file, rows: len(labels.Sets), add: func(item *db.Item, row int) error {
		item.Labels = s.At(row)
		return nil
	}}
	if names == "" {
		return s, nil
	}
	list, lines, err := readNames(names)
	if err != nil {
		return nil, err
	}
	if !labels.Numbers {
		return s, s.reorder(names, list, lines)
	}
	// A vector of classes may lack the last classes; a matrix may not lack columns.
	if len(list) < len(labels.Names) || len(list) > len(labels.Names) && !labels.Classes {
		return nil, exit.Failedf("%s has %s, %s has labels 0 to %d: a line is needed for each",
			names, term.Plural(len(list), "line", "lines"), file, len(labels.Names)-1)
	}
	labels.Names = list
	return s, nil
}

// reorder sorts named labels by a list, of which lines has the places from 1.
func (s *Labels) reorder(file string, list []string, lines map[string]int) error {
	for _, name := range s.read.Names {
		if lines[name] == 0 {
			return exit.Failedf("%s has the label %q, %s does not list it", s.file, name, file)
		}
	}
	for _, set := range s.read.Sets {
		for i := range set {
			set[i] = lines[s.read.Names[set[i]]] - 1
		}
	}
	s.read.Names = list
	return nil
}

// readNames reads the names of labels, one a line, and the line of each.
func readNames(file string) (names []string, lines map[string]int, err error) {
	if names, err = files.ReadLines(file); err != nil {
		return nil, nil, err
	}
	lines = make(map[string]int, len(names))
	for i, name := range names {
		if name == "" {
			return nil, nil, exit.Failedf("%s: line %d is empty: a label needs a name", file, i+1)
		}
		if first, ok := lines[name]; ok {
			return nil, nil, exit.Failedf("%s: the label %q stands on line %d and on line %d", file, name,
				first, i+1)
		}
		lines[name] = i + 1
	}
	return names, lines, nil
}

// At returns the labels of a row in order of their numbers, so that they are registered in that order.
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

// Names returns the names of the labels, by number.
func (s *Labels) Names() []string { return s.read.Names }

// CheckKnown refuses labels none of which the database knows: all figures would be 0 without an explanation.
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
		s.file, listStart(s.read.Names, 3), against, listStart(known, 3), advice)
}

// listStart returns the first entries of a list as text.
func listStart(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return strings.Join(list[:most], ", ") + ", ..."
}
