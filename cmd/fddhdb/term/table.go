package term

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

// A Column is the head of a column of a table; numbers are aligned right.
type Column struct {
	name   string
	number bool
}

// Left is the head of a column of text.
func Left(name string) Column { return Column{name: name} }

// Right is the head of a column of numbers.
func Right(name string) Column { return Column{name, true} }

// dataName is the name of a column where every one needs one: what has no heading is a
// remark on the row.
func (c Column) dataName() string { return cmp.Or(c.name, "note") }

// A Cell is a value that is spelt otherwise for programs than for people.
type Cell struct{ text, data string }

// NewCell is a cell with two spellings: for people, and for programs.
func NewCell(text, data string) Cell { return Cell{text, data} }

// String spells the value for people.
func (c Cell) String() string { return c.text }

// Remark adds a remark for people.
func (c Cell) Remark(text string) Cell { return Cell{c.text + text, c.data} }

// CountCell is a count, for people with commas.
func CountCell[T int | int64 | uint32 | uint64](n T) Cell { return Cell{Thousands(n), fmt.Sprint(n)} }

// BytesCell is a number of bytes.
func BytesCell(n int64) Cell { return Cell{Size(n), strconv.FormatInt(n, 10)} }

// NumberCell is a number, for people with so many digits behind the point.
func NumberCell(x float64, digits int) Cell {
	return Cell{strconv.FormatFloat(x, 'f', digits, 64), strconv.FormatFloat(x, 'g', -1, 64)}
}

// TextCell is text from a database; for people what is empty is a dash, so that columns
// stay columns.
func TextCell(s string) Cell { return Cell{OrDash(Plain(s)), s} }

// TimeCell is a time.
func TimeCell(t time.Time) Cell { return Cell{When(t), t.Format(time.RFC3339)} }

// NoCell stands where there is no value.
var NoCell = Cell{"-", ""}

// OrNoCell is NoCell for 0.
func OrNoCell[N ~uint32](n N) any {
	if n == 0 {
		return NoCell
	}
	return n
}

// A Table prints rows in the mode of the output, as they come where that can be.
type Table struct {
	printer *Printer
	columns []Column
	rows    []table.Row // in ModeTable, whose widths are known at the end
	csv     *csv.Writer
	any     bool
}

// NewTable begins a table in the mode of the output.
func (p *Printer) NewTable(columns []Column) *Table {
	t := &Table{printer: p, columns: columns}
	l := &p.layout
	l.tables++
	switch l.mode {
	case ModeCSV:
		if l.tables > 1 {
			fmt.Fprintln(p.Stdout)
		}
		t.csv = csv.NewWriter(p.Stdout)
		names := make([]string, len(columns))
		for i, c := range columns {
			names[i] = c.dataName()
		}
		_ = t.csv.Write(names) // an error stays with p.stdout
	case ModeMarkdown:
		fmt.Fprint(p.Stdout, "\n|")
		for _, c := range columns {
			fmt.Fprintf(p.Stdout, " %s |", markdownCell(c.dataName()))
		}
		fmt.Fprint(p.Stdout, "\n|")
		for _, c := range columns {
			if c.number {
				fmt.Fprint(p.Stdout, "---:|")
			} else {
				fmt.Fprint(p.Stdout, "---|")
			}
		}
		fmt.Fprintln(p.Stdout)
	}
	return t
}

// Add prints a row.
func (t *Table) Add(cells ...any) {
	out := t.printer.Stdout
	switch t.printer.layout.mode {
	case ModeCSV:
		record := make([]string, len(cells))
		for i, c := range cells {
			if spelt, ok := c.(Cell); ok {
				record[i] = spelt.data
			} else {
				record[i] = fmt.Sprint(c)
			}
		}
		_ = t.csv.Write(record)
	case ModeMarkdown:
		fmt.Fprint(out, "|")
		for _, c := range cells {
			fmt.Fprintf(out, " %s |", markdownCell(fmt.Sprint(c)))
		}
		fmt.Fprintln(out)
	case ModeLine:
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

// End prints what is left.
func (t *Table) End() {
	switch t.printer.layout.mode {
	case ModeCSV:
		t.csv.Flush()
	case ModeMarkdown:
		fmt.Fprintln(t.printer.Stdout)
	case ModeLine:
	default:
		t.print()
	}
}

// print writes rows under their heads, without lines around: it can be copied, and cut by
// columns.
func (t *Table) print() {
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
		fmt.Fprintln(t.printer.Stdout, line)
	}
}

// PrintTable prints a table whose rows are there already.
func (p *Printer) PrintTable(columns []Column, rows [][]any) {
	t := p.NewTable(columns)
	for _, r := range rows {
		t.Add(r...)
	}
	t.End()
}

// markdownCell spells text so that it stays in its cell.
func markdownCell(s string) string { return strings.ReplaceAll(Plain(s), "|", `\|`) }

// A Pair is a name and its value.
type Pair struct {
	name  string
	Value any
}

// NewPair is a name and its value.
func NewPair(name string, value any) Pair { return Pair{name, value} }

// PrintPairs writes names and values under each other.
func (p *Printer) PrintPairs(pairs []Pair) {
	if m := p.layout.mode; m == ModeCSV || m == ModeMarkdown {
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
		if p.layout.mode == ModeLine {
			p.Printf("%*s = %v\n", width, x.name, x.Value)
		} else {
			p.Printf("%-*s  %v\n", width, x.name, x.Value)
		}
	}
}
