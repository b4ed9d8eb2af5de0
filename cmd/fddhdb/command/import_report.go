package command

import (
	"fmt"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
)

func (e *env) reportImport(l *loader, took float64) error {
	rate := 0.0
	if took > 0 {
		rate = float64(l.items-l.before) / took
	}
	var columns []source.MappedColumn
	if d := l.Whole; d != nil {
		columns = d.Mapping()
	}
	if l.o.json {
		return e.PrintJSON(struct {
			Items   int                     `json:"items"`
			Skipped int                     `json:"skipped"`
			Seconds float64                 `json:"seconds"`
			Rate    float64                 `json:"items_per_second"`
			DryRun  bool                    `json:"dry_run,omitempty"`
			From    int                     `json:"resumed_at,omitempty"`
			Reasons []*source.SkippedReason `json:"skipped_reasons,omitempty"`
			Columns []source.MappedColumn   `json:"columns,omitempty"`
		}{l.items, l.skipped.N, took, rate, l.o.dryRun, l.from, l.skipped.Groups, columns})
	}
	if l.o.dryRun && columns != nil {
		e.printColumns(columns)
	}
	if l.created != nil && l.Whole != nil {
		// The user did not declare this schema: it was derived from the data.
		e.Printf("collection %s, from %s: %s\n", l.o.collection, l.o.input(l.o.items).Name, textform.DescribeSchema(*l.created))
	}
	skipped := ""
	if l.skipped.N > 0 {
		skipped = fmt.Sprintf(", skipped %s", term.Thousands(l.skipped.N))
	}
	if l.o.dryRun {
		e.Printf("%s can be imported%s; nothing was stored\n", term.Plural(l.items, "item", "items"), skipped)
		return nil
	}
	e.Printf("imported %s%s in %s\n", term.Plural(l.items, "item", "items"), skipped, term.Seconds(took))
	return nil
}

// printColumns prints what the columns of a table become.
func (e *env) printColumns(columns []source.MappedColumn) {
	rows := make([][]any, len(columns))
	for i, c := range columns {
		rows[i] = []any{term.TextCell(c.Column), c.Type, term.TextCell(c.Becomes), term.TextCell(c.Example)}
	}
	e.PrintTable([]term.Column{term.Left("column"), term.Left("type"), term.Left("becomes"), term.Left("example")}, rows)
}
