package paper

import (
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// print prints the rows as a table.
func (l *lab) print(p *term.Printer) {
	columns := slices.Clone(l.kind.lead)
	for _, pair := range l.pairs {
		columns = append(columns, term.Right(pair), term.Right("by score"))
	}
	var rows [][]any
	for _, m := range l.rows {
		row := l.kind.cells(l, m)
		for _, pair := range l.pairs {
			r := m.Retrieval[pair]
			row = append(row, l.figure(r.MAP, r.MAPStd), l.figure(r.MAPAsym, r.MAPAsymStd))
		}
		rows = append(rows, row)
	}
	p.PrintTable(columns, rows)
}

// figure returns a cell with a mean and, if there are several seeds, its standard
// deviation.
func (l *lab) figure(mean, std float64) any {
	if l.seeds == 1 {
		return term.NumberCell(mean, 4)
	}
	return fmt.Sprintf("%.4f +- %.4f", mean, std)
}

// warnings returns a text for each length of codes and reason for which rows were left
// out.
func (l *lab) warnings() (texts []string) {
	list := l.leftOut
	for len(list) > 0 {
		rows, first, more := list[0].row, list[0], list[1:]
		list = nil
		for _, left := range more {
			if left.bits == first.bits && left.reason.Error() == first.reason.Error() {
				rows += ", " + left.row
			} else {
				list = append(list, left)
			}
		}
		texts = append(texts, fmt.Sprintf("%s left out: %v", rows, first.reason))
	}
	return texts
}
