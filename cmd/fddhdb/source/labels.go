package source

import (
	"io"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/parquet"
	"github.com/fddhdb/fddhdb/files/table"
)

// Labels is a file of labels.
type Labels struct {
	file string
	read *files.Labels
	row  int

	// Ordered says that the names have a given order, in which they are registered whether they occur or not.
	// Names of a text without such an order are registered as they appear on items.
	Ordered bool
}

// OpenLabels reads labels. names, if not empty, is a file that names the columns of a matrix or the numbers
// of classes, or that orders the labels of a text.
func OpenLabels(file, names string) (*Labels, error) {
	labels, err := readLabels(file)
	if err != nil {
		return nil, err
	}
	s := &Labels{file: file, read: labels, Ordered: labels.Numbers || names != ""}
	if names == "" {
		return s, nil
	}
	list, err := readNames(names)
	if err != nil {
		return nil, err
	}
	if labels.Numbers {
		return s, s.rename(names, list)
	}
	return s, s.reorder(names, list)
}

// readLabels reads a file of labels, of which only .parquet is not of package files.
func readLabels(file string) (*files.Labels, error) {
	lower := strings.ToLower(file)
	if i := strings.LastIndex(lower, ".parquet:"); i >= 0 {
		return columnLabels(file[:i+len(".parquet")], file[i+len(".parquet:"):])
	}
	if strings.HasSuffix(lower, ".parquet") {
		return columnLabels(file, "")
	}
	return files.ReadLabels(file)
}

// columnLabels reads the labels of a column of a .parquet, or of the column that labels are guessed to be in.
func columnLabels(file, column string) (*files.Labels, error) {
	t, err := parquet.OpenItems(file)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	columns, err := t.Columns()
	if err != nil {
		return nil, err
	}
	m := &mapper{file: file, columns: columns, uses: make([]table.Use, len(columns)), done: make([]bool, len(columns))}
	if column == "" {
		if m.guessLabels(); !slices.Contains(m.done, true) {
			return nil, exit.Usagef("--labels %s: say which column has them with %s:COLUMN", file, file)
		}
	} else {
		i, err := m.find("--labels", column)
		if err == nil {
			err = m.use("--labels", i, table.Use{Role: table.AsLabels})
		}
		if err != nil {
			return nil, err
		}
	}
	if err := t.Map(m.uses); err != nil {
		return nil, err
	}
	out := &files.Labels{}
	numbers := map[string]int{}
	var item table.Item
	for {
		err := t.Next(&item)
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var set []int
		for _, name := range item.Labels {
			i, ok := numbers[name]
			if !ok {
				i = len(out.Names)
				numbers[name] = i
				out.Names = append(out.Names, name)
			}
			set = append(set, i)
		}
		slices.Sort(set)
		out.Sets = append(out.Sets, slices.Compact(set))
	}
}

// rename gives names to numbered labels.
func (s *Labels) rename(file string, names []string) error {
	// A vector of classes may lack the last classes; a matrix may not lack columns.
	wrong := len(names) < len(s.read.Names) || len(names) > len(s.read.Names) && !s.read.Classes
	if wrong {
		return exit.Failedf("%s has %s, %s has labels 0 to %d: a line is needed for each",
			file, term.Plural(len(names), "line", "lines"), s.file, len(s.read.Names)-1)
	}
	s.read.Names = names
	return nil
}

// reorder sorts named labels by a list.
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
	names, err := files.ReadLines(file)
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
