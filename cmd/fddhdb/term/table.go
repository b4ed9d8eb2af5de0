package term

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
)

// A Column is the heading of a column of a table. Numbers are aligned right.
type Column struct {
	name   string
	number bool
}

// Left returns the heading of a column of text.
func Left(name string) Column { return Column{name: name} }

// Right returns the heading of a column of numbers.
func Right(name string) Column { return Column{name: name, number: true} }

// A Cell is a value that is written differently for programs and for people. What people
// see of it is Plain.
type Cell struct{ text, data string }

// NewCell returns a cell with its text for people and its data for programs.
func NewCell(text, data string) Cell { return Cell{text, data} }

// String returns the text for people.
func (c Cell) String() string { return c.text }

// Remark returns the cell with a remark for people.
func (c Cell) Remark(text string) Cell { return Cell{c.text + text, c.data} }

// Value returns the text of v, a value of a field. The text of a time is that of RFC 3339, as in JSON.
func Value(v any) string {
	if t, is := v.(time.Time); is {
		return t.Format(time.RFC3339Nano)
	}
	return fmt.Sprint(v)
}

// CountCell returns a count; people see commas.
func CountCell[T int | int64 | uint32 | uint64](n T) Cell { return Cell{Thousands(n), fmt.Sprint(n)} }

// BytesCell returns a number of bytes.
func BytesCell(n int64) Cell { return Cell{Size(n), strconv.FormatInt(n, 10)} }

// NumberCell returns a number; people see so many digits after the point.
func NumberCell(x float64, digits int) Cell {
	return Cell{strconv.FormatFloat(x, 'f', digits, 64), strconv.FormatFloat(x, 'g', -1, 64)}
}

// Similarity returns a similarity as text, with three digits after the point. Below .01 it has three
// significant digits: with the metric l2, 1 / (1 + d) is that small for a large distance d. From a
// million on, where only inner products are, it has seven.
func Similarity(x float32) string {
	switch size := math.Abs(float64(x)); {
	case x != 0 && size < .01:
		return strconv.FormatFloat(float64(x), 'g', 3, 32)
	case size >= 1e6:
		return strconv.FormatFloat(float64(x), 'g', 7, 32)
	}
	return strconv.FormatFloat(float64(x), 'f', 3, 32)
}

// SimilarityCell returns a similarity; NaN is none.
func SimilarityCell(x float32) Cell {
	if math.IsNaN(float64(x)) {
		return NoCell
	}
	return Cell{Similarity(x), strconv.FormatFloat(float64(x), 'g', -1, 32)}
}

// TextCell returns text. For people empty text is a dash, so that columns stay columns.
func TextCell(s string) Cell { return Cell{OrDash(s), s} }

// TimeCell returns a time.
func TimeCell(t time.Time) Cell { return Cell{When(t), t.Format(time.RFC3339)} }

// NoCell is a missing value.
var NoCell = Cell{"-", ""}

// OrNoCell returns n, or NoCell for 0.
func OrNoCell[N ~uint32](n N) any {
	if n == 0 {
		return NoCell
	}
	return n
}

// A Table prints rows in the mode of the output, each at once if possible. On a terminal
// it fits the width: long text is cut. Elsewhere nothing is cut.
type Table struct {
	printer *Printer
	columns []Column
	rows    [][]string   // in ModeTable: rows that wait for the widths
	most    int          // number of rows that may wait; 0: all
	layout  *tableLayout // in ModeTable: nil until the widths are fixed
	csv     *csv.Writer
}

// firstRows is the number of rows that decide on the widths of a long table.
const firstRows = 200

// NewLongTable is NewTable for any number of rows: the first ones decide on the widths,
// and are all that is held in memory.
func (p *Printer) NewLongTable(columns []Column) *Table {
	t := p.NewTable(columns)
	t.most = firstRows
	return t
}

// NewTable begins a table in the mode of the output.
func (p *Printer) NewTable(columns []Column) *Table {
	t := &Table{printer: p, columns: columns}
	p.bar.End()
	p.layout.tables++
	if !p.Flat() {
		return t
	}
	if p.layout.tables > 1 {
		fmt.Fprintln(p.Stdout)
	}
	t.csv = csv.NewWriter(p.Stdout)
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = cmp.Or(c.name, "note") // a column without a heading has remarks on the rows
	}
	_ = t.csv.Write(names) // p.Stdout keeps the error
	return t
}

// Add adds a row.
func (t *Table) Add(cells ...any) {
	if t.csv == nil {
		t.rows = append(t.rows, spelt(cells))
		if t.layout != nil || len(t.rows) == t.most {
			t.print()
		}
		return
	}
	record := make([]string, len(cells))
	for i, c := range cells {
		if spelt, ok := c.(Cell); ok {
			record[i] = spelt.data
		} else {
			record[i] = fmt.Sprint(c)
		}
		if t.printer.terminal != nil {
			record[i] = Plain(record[i]) // of its lines, too
		}
	}
	_ = t.csv.Write(record)
}

// End prints the rest.
func (t *Table) End() {
	if t.csv != nil {
		t.csv.Flush()
	} else if t.layout == nil || len(t.rows) > 0 {
		t.print()
	}
}

// print writes the rows that wait, without frame lines, so that users can copy them and
// cut columns. The first time it fixes the widths and writes the heading.
func (t *Table) print() {
	p := t.printer
	if t.layout == nil {
		t.layout = layOut(t.columns, t.rows, p.terminalWidth())
		p.bold(t.layout.spell(headings(t.columns)))
	}
	for _, r := range t.rows {
		fmt.Fprintln(p.Stdout, t.layout.spell(r))
	}
	t.rows = t.rows[:0]
}

// PrintTable prints a table of given rows.
func (p *Printer) PrintTable(columns []Column, rows [][]any) {
	t := p.NewTable(columns)
	for _, r := range rows {
		t.Add(r...)
	}
	t.End()
}

// A Pair is a name and a value.
type Pair struct {
	name  string
	Value any
}

// NewPair returns a name with its value.
func NewPair(name string, value any) Pair { return Pair{name, value} }

// PrintPairs prints names and values in two columns.
func (p *Printer) PrintPairs(pairs []Pair) {
	if p.Flat() {
		t := p.NewTable([]Column{Left("name"), Left("value")})
		for _, x := range pairs {
			t.Add(x.name, x.Value)
		}
		t.End()
		return
	}
	width := 0
	for _, x := range pairs {
		width = max(width, len(x.name))
	}
	for _, x := range pairs {
		p.Printf("%-*s  %s\n", width, x.name, Plain(fmt.Sprint(x.Value)))
	}
}

const (
	// columnGap separates columns. It is two blanks, so that text with single blanks
	// stays one column for awk -F '  +'.
	columnGap = "  "
	// legible is the least width of a cut column.
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
// is no terminal and nothing is cut.
func layOut(columns []Column, rows [][]string, terminal int) *tableLayout {
	l := &tableLayout{columns: columns, cut: terminal > 0}
	for i, c := range columns {
		width := displayWidth(c.name)
		for _, r := range rows {
			width = max(width, displayWidth(r[i]))
		}
		l.widths = append(l.widths, width)
	}
	if l.cut && !l.shrink(terminal) {
		l.line = terminal
	}
	return l
}

// shrink takes the widest columns of text in until a line fits into so many columns of
// the terminal. It reports whether that was possible with legible columns. Numbers stay
// whole, as a part of a number is another number.
func (l *tableLayout) shrink(terminal int) bool {
	for total := l.width(); total > terminal; total-- {
		widest := -1
		for i, w := range l.widths {
			if !l.columns[i].number && w > max(legible, displayWidth(l.columns[i].name)) &&
				(widest < 0 || w >= l.widths[widest]) {
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
