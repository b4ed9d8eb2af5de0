package term

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

const (
	// columnGap separates columns. It is two blanks, so that text with single blanks
	// stays one column for awk -F '  +'.
	columnGap = "  "
	// readable is the least width of a cut column. A table that does not fit then has
	// lines wider than the terminal, if that can show them.
	readable = 24
	// legible is the same where the terminal cannot.
	legible = 8
	// ellipsis ends what was cut.
	ellipsis = "…"
)

// A tableLayout is the widths of the columns of a table in ModeTable. They are fixed
// when the first rows are printed: later rows are printed at once.
type tableLayout struct {
	columns []Column
	widths  []int
	cut     bool // cells are cut to the widths
	line    int  // width at which whole lines are cut; 0: nowhere
}

// layOut fixes the widths for a terminal of so many columns; 0 means that the output
// is no terminal and nothing is cut. wide reports whether the terminal can show lines
// that are wider than it; it is asked only where a table of readable cells has such
// lines.
func layOut(columns []Column, rows [][]string, terminal int, wide func() bool) *tableLayout {
	l := &tableLayout{columns: columns, cut: terminal > 0}
	for i, c := range columns {
		width := displayWidth(c.name)
		for _, r := range rows {
			width = max(width, displayWidth(r[i]))
		}
		l.widths = append(l.widths, width)
	}
	if !l.cut {
		return l
	}
	natural := slices.Clone(l.widths)
	if l.shrink(terminal, readable) {
		return l
	}
	if wide() {
		for i, w := range natural {
			l.widths[i] = min(w, terminal)
		}
		return l
	}
	l.shrink(terminal, legible)
	l.line = terminal
	return l
}

// shrink takes the widest columns of text in until a line fits into so many columns of
// the terminal. It reports whether that was possible without a column falling below the
// least width. Numbers stay whole, as a part of a number is another number.
func (l *tableLayout) shrink(terminal, least int) bool {
	for total := l.width(); total > terminal; total-- {
		widest := -1
		for i, w := range l.widths {
			if !l.columns[i].number && w > max(least, displayWidth(l.columns[i].name)) && (widest < 0 || w >= l.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		l.widths[widest]--
	}
	return true
}

// width returns the width of a line.
func (l *tableLayout) width() int {
	total := len(columnGap) * (len(l.widths) - 1)
	for _, w := range l.widths {
		total += w
	}
	return total
}

// spell returns a line of the table.
func (l *tableLayout) spell(cells []string) string {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteString(columnGap)
		}
		if l.cut && !l.columns[i].number {
			cell = text.Snip(cell, l.widths[i], ellipsis)
		}
		blanks := strings.Repeat(" ", max(0, l.widths[i]-displayWidth(cell)))
		if l.columns[i].number {
			b.WriteString(blanks + cell)
		} else {
			b.WriteString(cell + blanks)
		}
	}
	line := strings.TrimRight(b.String(), " ")
	if l.line > 0 {
		line = text.Snip(line, l.line, ellipsis)
	}
	return line
}

// headings returns the names of the columns for people.
func headings(columns []Column) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return names
}

// spelt returns cells as text for people.
func spelt(cells []any) []string {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = Plain(fmt.Sprint(c))
	}
	return texts
}

func displayWidth(s string) int { return text.StringWidthWithoutEscSequences(s) }
