package measure

import (
	"slices"
	"strconv"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// lineJSON is a measurement in the form of bench --json.
type lineJSON struct {
	Op         string  `json:"op"`
	K          *int    `json:"k,omitempty"`
	Radius     *int    `json:"radius,omitempty"`
	Tier       string  `json:"tier"`
	RankedBy   string  `json:"order,omitempty"` // if --order is given and the answer has keys
	Queries    int     `json:"queries"`
	P50        float64 `json:"p50_us"`
	P99        float64 `json:"p99_us"`
	Mean       float64 `json:"mean_us"`
	Encode     float64 `json:"encode_us"` // median of this part, as for the next three
	Find       float64 `json:"find_us"`
	Order      float64 `json:"order_us"`
	Keys       float64 `json:"keys_us"`
	AvgHits    float64 `json:"avg_hits"`
	Checked    *int    `json:"checked,omitempty"`
	Mismatches *int    `json:"mismatches,omitempty"`
	Items      int     `json:"items"`              // number of searched items
	Database   string  `json:"database,omitempty"` // if there are several
}

// Print prints the measurements. several adds the names of the databases, and checked
// the result of the check.
func Print(p *term.Printer, runs []Run, several, checked, asJSON bool) error {
	if asJSON {
		return printBenchJSON(p, runs, several, checked)
	}
	columns := []term.Column{term.Left("search"), term.Left("tier")}
	ordered := slices.ContainsFunc(runs, func(r Run) bool { return r.ordered() })
	if ordered {
		columns = append(columns, term.Left("ranked by"))
	}
	columns = append(columns, term.Right("queries"), term.Right("p50 us"), term.Right("p99 us"), term.Right("mean us"),
		term.Right("encode"), term.Right("find"), term.Right("order"), term.Right("keys"), term.Right("hits"), term.Right("times "+FullScan))
	if ordered {
		columns = append(columns, term.Right("times none"))
	}
	if checked {
		columns = append(columns, term.Right("checked"), term.Right("mismatches"))
	}
	if several {
		columns = append([]term.Column{term.Left("database"), term.Right("items")}, columns...)
	}
	var rows [][]any
	for _, run := range runs {
		for _, row := range run.rows(ordered, checked) {
			if several {
				row = append([]any{term.TextCell(run.database), term.CountCell(run.items)}, row...)
			}
			rows = append(rows, row)
		}
	}
	if len(rows) > 0 {
		p.PrintTable(columns, rows)
	}
	return nil
}

func printBenchJSON(p *term.Printer, runs []Run, several, checked bool) error {
	for _, run := range runs {
		for _, l := range run.lines {
			j := l.json(checked)
			if j.Items = run.items; several {
				j.Database = run.database
			}
			if err := p.PrintJSON(j); err != nil {
				return err
			}
		}
	}
	return nil
}

// rows returns a row of the table for each measurement that was not interrupted.
func (r *Run) rows(ordered, checked bool) (rows [][]any) {
	lines := slices.DeleteFunc(slices.Clone(r.lines), func(l *line) bool { return len(l.times) == 0 })
	for _, l := range lines {
		j := l.json(checked)
		row := []any{l.Op.String(), j.Tier}
		if ordered {
			row = append(row, term.TextCell(j.RankedBy))
		}
		row = append(row, j.Queries, microseconds(j.P50), microseconds(j.P99), microseconds(j.Mean),
			microseconds(j.Encode), microseconds(j.Find), microseconds(j.Order), microseconds(j.Keys), term.NumberCell(j.AvgHits, 1), term.NoCell)
		for _, yard := range lines {
			if yard.tier == FullScan && yard.Op == l.Op && j.Find > 0 {
				row[len(row)-1] = term.NumberCell(yard.json(false).Find/j.Find, 2)
			}
		}
		if ordered {
			row = append(row, l.timesNone(lines))
		}
		if checked {
			row = append(row, *j.Checked, *j.Mismatches)
		}
		rows = append(rows, row)
	}
	return rows
}

// ordered reports whether any measurement has an order.
func (r *Run) ordered() bool {
	return slices.ContainsFunc(r.lines, func(l *line) bool { return l.ordered })
}

// timesNone returns how many times as long as in the order none a search takes, encoding left
// out, by the medians.
func (l *line) timesNone(lines []*line) term.Cell {
	for _, none := range lines {
		if l.ordered && none.ordered && none.order == db.RerankNone && none.Op == l.Op && none.tier == l.tier {
			if least := none.searching(); least > 0 {
				return term.NumberCell(l.searching()/least, 2)
			}
		}
	}
	return term.NoCell
}

// searching returns the median time of all but encoding, in microseconds.
func (l *line) searching() float64 {
	return quantile(l.each(func(p Parts) time.Duration { return p.Find + p.Order + p.Keys }), .5)
}

// microseconds returns a time with a digit or two after the point if they matter.
func microseconds(x float64) string {
	switch {
	case x < 10:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x < 100:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}
