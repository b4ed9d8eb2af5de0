package command

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// A column is the head of a column of a table; numbers are aligned right.
type column struct {
	name   string
	number bool
}

// left is the head of a column of text.
func left(name string) column { return column{name: name} }

// right is the head of a column of numbers.
func right(name string) column { return column{name, true} }

// dataName is the name of a column where every one needs one: what has no heading is a
// remark on the row.
func (c column) dataName() string { return cmp.Or(c.name, "note") }

// A cell is a value that is spelt otherwise for programs than for people.
type cell struct{ text, data string }

func newCell(text, data string) cell { return cell{text, data} }

func (c cell) String() string { return c.text }

// countCell is a count, for people with commas.
func countCell[T int | int64 | uint32 | uint64](n T) cell { return cell{thousands(n), fmt.Sprint(n)} }

// bytesCell is a number of bytes.
func bytesCell(n int64) cell { return cell{size(n), strconv.FormatInt(n, 10)} }

// numberCell is a number, for people with so many digits behind the point.
func numberCell(x float64, digits int) cell {
	return cell{strconv.FormatFloat(x, 'f', digits, 64), strconv.FormatFloat(x, 'g', -1, 64)}
}

// textCell is text from a database; for people what is empty is a dash, so that columns
// stay columns.
func textCell(s string) cell { return cell{orDash(plain(s)), s} }

// timeCell is a time.
func timeCell(t time.Time) cell { return cell{when(t), t.Format(time.RFC3339)} }

// noCell stands where there is no value.
var noCell = cell{"-", ""}

// orNoCell is noCell for 0.
func orNoCell(n uint32) any {
	if n == 0 {
		return noCell
	}
	return n
}

// A printedTable prints rows in the mode of the output, as they come where that can be.
type printedTable struct {
	printer *printer
	columns []column
	rows    []table.Row // in modeTable, whose widths are known at the end
	csv     *csv.Writer
	any     bool
}

func (p *printer) newTable(columns []column) *printedTable {
	t := &printedTable{printer: p, columns: columns}
	l := &p.layout
	l.tables++
	switch l.mode {
	case modeCSV:
		if l.tables > 1 {
			fmt.Fprintln(p.stdout)
		}
		t.csv = csv.NewWriter(p.stdout)
		names := make([]string, len(columns))
		for i, c := range columns {
			names[i] = c.dataName()
		}
		_ = t.csv.Write(names) // an error stays with p.stdout
	case modeMarkdown:
		fmt.Fprint(p.stdout, "\n|")
		for _, c := range columns {
			fmt.Fprintf(p.stdout, " %s |", markdownCell(c.dataName()))
		}
		fmt.Fprint(p.stdout, "\n|")
		for _, c := range columns {
			if c.number {
				fmt.Fprint(p.stdout, "---:|")
			} else {
				fmt.Fprint(p.stdout, "---|")
			}
		}
		fmt.Fprintln(p.stdout)
	}
	return t
}

// add prints a row.
func (t *printedTable) add(cells ...any) {
	out := t.printer.stdout
	switch t.printer.layout.mode {
	case modeCSV:
		record := make([]string, len(cells))
		for i, c := range cells {
			if spelt, ok := c.(cell); ok {
				record[i] = spelt.data
			} else {
				record[i] = fmt.Sprint(c)
			}
		}
		_ = t.csv.Write(record)
	case modeMarkdown:
		fmt.Fprint(out, "|")
		for _, c := range cells {
			fmt.Fprintf(out, " %s |", markdownCell(fmt.Sprint(c)))
		}
		fmt.Fprintln(out)
	case modeLine:
		if t.any {
			fmt.Fprintln(out)
		}
		width := 0
		for _, c := range t.columns {
			width = max(width, text.StringWidthWithoutEscSequences(c.dataName()))
		}
		for i, c := range cells {
			name := t.columns[i].dataName()
			fmt.Fprintf(out, "%*s%s = %v\n", width-text.StringWidthWithoutEscSequences(name), "", name, c)
		}
	default:
		t.rows = append(t.rows, cells)
	}
	t.any = true
}

// end prints what is left.
func (t *printedTable) end() {
	switch t.printer.layout.mode {
	case modeCSV:
		t.csv.Flush()
	case modeMarkdown:
		fmt.Fprintln(t.printer.stdout)
	case modeLine:
	default:
		t.print()
	}
}

// print writes rows under their heads, without lines around: it can be copied, and cut by
// columns.
func (t *printedTable) print() {
	w := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	w.SetStyle(style)
	var head table.Row
	var configs []table.ColumnConfig
	for i, c := range t.columns {
		head = append(head, c.name)
		config := table.ColumnConfig{Number: i + 1, Align: text.AlignLeft, AlignHeader: text.AlignLeft}
		if c.number {
			config.Align, config.AlignHeader = text.AlignRight, text.AlignRight
		}
		configs = append(configs, config)
	}
	w.AppendHeader(head)
	w.SetColumnConfigs(configs)
	w.AppendRows(t.rows)
	heading := t.printer.layout.colour
	for line := range strings.Lines(w.Render()) {
		line = strings.TrimRight(line, " \n")
		if heading {
			line, heading = bold(line), false
		}
		fmt.Fprintln(t.printer.stdout, line)
	}
}

// printTable prints a table whose rows are there already.
func (p *printer) printTable(columns []column, rows [][]any) {
	t := p.newTable(columns)
	for _, r := range rows {
		t.add(r...)
	}
	t.end()
}

// markdownCell spells text so that it stays in its cell.
func markdownCell(s string) string { return strings.ReplaceAll(plain(s), "|", `\|`) }

// A pair is a name and its value.
type pair struct {
	name  string
	value any
}

func newPair(name string, value any) pair { return pair{name, value} }

// printPairs writes names and values under each other.
func (p *printer) printPairs(pairs []pair) {
	if m := p.layout.mode; m == modeCSV || m == modeMarkdown {
		t := p.newTable([]column{left("name"), left("value")})
		for _, x := range pairs {
			t.add(x.name, x.value)
		}
		t.end()
		return
	}
	width := 0
	for _, x := range pairs {
		width = max(width, len(x.name))
	}
	for _, x := range pairs {
		if p.layout.mode == modeLine {
			p.printf("%*s = %v\n", width, x.name, x.value)
		} else {
			p.printf("%-*s  %v\n", width, x.name, x.value)
		}
	}
}
