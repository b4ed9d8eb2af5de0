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

// dataName is the name of a column where every one needs one: what has no heading is a
// remark on the row.
func (c column) dataName() string { return cmp.Or(c.name, "note") }

// A cell is a value that is spelt otherwise for programs than for people.
type cell struct{ text, data string }

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
	env     *env
	columns []column
	rows    []table.Row // in modeTable, whose widths are known at the end
	csv     *csv.Writer
	any     bool
}

func (e *env) newTable(columns []column) *printedTable {
	t := &printedTable{env: e, columns: columns}
	l := &e.layout
	l.tables++
	switch l.mode {
	case modeCSV:
		if l.tables > 1 {
			fmt.Fprintln(e.stdout)
		}
		t.csv = csv.NewWriter(e.stdout)
		names := make([]string, len(columns))
		for i, c := range columns {
			names[i] = c.dataName()
		}
		_ = t.csv.Write(names) // an error stays with e.stdout
	case modeMarkdown:
		fmt.Fprint(e.stdout, "\n|")
		for _, c := range columns {
			fmt.Fprintf(e.stdout, " %s |", markdownCell(c.dataName()))
		}
		fmt.Fprint(e.stdout, "\n|")
		for _, c := range columns {
			if c.number {
				fmt.Fprint(e.stdout, "---:|")
			} else {
				fmt.Fprint(e.stdout, "---|")
			}
		}
		fmt.Fprintln(e.stdout)
	}
	return t
}

// add prints a row.
func (t *printedTable) add(cells ...any) {
	out := t.env.stdout
	switch t.env.layout.mode {
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
	switch t.env.layout.mode {
	case modeCSV:
		t.csv.Flush()
	case modeMarkdown:
		fmt.Fprintln(t.env.stdout)
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
	heading := t.env.layout.colour
	for line := range strings.Lines(w.Render()) {
		line = strings.TrimRight(line, " \n")
		if heading {
			line, heading = bold(line), false
		}
		fmt.Fprintln(t.env.stdout, line)
	}
}

// printTable prints a table whose rows are there already.
func (e *env) printTable(columns []column, rows [][]any) {
	t := e.newTable(columns)
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

// printPairs writes names and values under each other.
func (e *env) printPairs(pairs []pair) {
	if m := e.layout.mode; m == modeCSV || m == modeMarkdown {
		t := e.newTable([]column{{"name", false}, {"value", false}})
		for _, p := range pairs {
			t.add(p.name, p.value)
		}
		t.end()
		return
	}
	width := 0
	for _, p := range pairs {
		width = max(width, len(p.name))
	}
	for _, p := range pairs {
		if e.layout.mode == modeLine {
			e.printf("%*s = %v\n", width, p.name, p.value)
		} else {
			e.printf("%-*s  %v\n", width, p.name, p.value)
		}
	}
}
