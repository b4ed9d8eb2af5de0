package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/files/table"
)

// wideColumns is the least number of columns that are guessed to be the numbers of a vector.
const wideColumns = 8

// numbered cuts a name into what comes before its number, and the number: dim_7 into dim_ and 7, and dim[7]
// into dim[ and 7.
func numbered(name string) (prefix string, n int, ok bool) {
	name = strings.TrimRight(name, "])")
	prefix = strings.TrimRight(name, "0123456789")
	n, err := strconv.Atoi(name[len(prefix):])
	return prefix, n, err == nil
}

// wideName is the name of the modality of columns with a prefix.
func wideName(prefix string) string {
	return cmp.Or(FieldName(strings.Trim(prefix, "_-.[( ")), "vector")
}

// sortWide sorts columns by their numbers, and reports whether these are 0, 1, 2, ... or 1, 2, 3, ...
func (m *mapper) sortWide(columns []int) bool {
	number := func(i int) int { _, n, _ := numbered(m.columns[i].Name); return n }
	slices.SortFunc(columns, func(a, b int) int { return cmp.Compare(number(a), number(b)) })
	for at, i := range columns {
		if first := number(columns[0]); first > 1 || number(i) != first+at {
			return false
		}
	}
	return true
}

// guessWide takes columns of numbers whose names differ in ascending numbers for the numbers of a vector.
// Where the user has named other vectors, these columns are left aside.
func (m *mapper) guessWide() {
	wanted := len(m.say.Vectors) == 0
	var order []string
	groups := map[string][]int{}
	for i := range m.columns {
		c := &m.columns[i]
		prefix, _, ok := numbered(c.Name)
		if !ok || m.done[i] || !c.Numeric || slices.Contains(labelNames, wideName(prefix)) {
			continue
		}
		if groups[prefix] == nil {
			order = append(order, prefix)
		}
		groups[prefix] = append(groups[prefix], i)
	}
	for _, prefix := range order {
		columns, name := groups[prefix], wideName(prefix)
		if _, taken := m.taken[name]; taken || len(columns) < wideColumns || !m.sortWide(columns) {
			continue
		}
		for at, i := range columns {
			if m.done[i] = true; wanted {
				m.uses[i] = table.Use{Role: table.AsElement, Name: name, At: at}
			}
		}
		if wanted {
			m.taken[name] = columns[0]
			m.guessed = append(m.guessed, fmt.Sprintf("the vector %q is the columns %s", name, m.wideNames(columns)))
		}
	}
}

// wideNames returns the names of columns in words.
func (m *mapper) wideNames(columns []int) string {
	return fmt.Sprintf("%q to %q", m.columns[columns[0]].Name, m.columns[columns[len(columns)-1]].Name)
}

// elements returns the columns of a vector, by number.
func (m *mapper) elements(name string) []int {
	var columns []int
	for i, u := range m.uses {
		if u.Role == table.AsElement && u.Name == name {
			columns = append(columns, i)
		}
	}
	slices.SortFunc(columns, func(a, b int) int { return cmp.Compare(m.uses[a].At, m.uses[b].At) })
	return columns
}

// obeyWide settles the vector whose numbers have the columns that are of a pattern.
func (m *mapper) obeyWide(v Mapped) error {
	option := m.words.Vectors
	var columns []int
	for i := range m.columns {
		if _, _, ok := numbered(m.columns[i].Name); ok && like(v.Column, m.columns[i].Name) {
			columns = append(columns, i)
		}
	}
	if len(columns) == 0 {
		_, err := m.find(option, v.Column)
		return err
	}
	if !m.sortWide(columns) {
		return fault.Invalid("%s: %s: the columns of %q are %s, whose numbers are not 0, 1, 2, ... or 1, 2, 3, ...: they are to say the order of the numbers of the vector", option, m.file, v.Column, m.wideNames(columns))
	}
	prefix, _, _ := numbered(m.columns[columns[0]].Name)
	name := cmp.Or(v.Name, wideName(prefix))
	for at, i := range columns {
		if err := m.use(option, i, table.Use{Role: table.AsElement, Name: name, At: at}); err != nil {
			return err
		}
	}
	return nil
}
