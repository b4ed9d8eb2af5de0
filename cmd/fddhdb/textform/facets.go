package textform

import (
	"encoding/json"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// FacetColumns are the columns of FacetRows.
var FacetColumns = []term.Column{term.Left("facet"), term.Left("value"), term.Right("items")}

// FacetLimit returns how many values of a facet search prints: those of a table are for people.
func FacetLimit(json bool) int {
	if json {
		return 1000
	}
	return 10
}

// FacetRows returns a row for each count of an answer.
func FacetRows(r *db.Result) (rows [][]any) {
	for i := range r.Facets {
		for _, n := range Counts(&r.Facets[i]) {
			rows = append(rows, []any{term.TextCell(r.Facets[i].By), ValueCell(n.Value), term.CountCell(n.Items)})
		}
	}
	return rows
}

// PrintFacets prints the counts of an answer, if there are some.
func PrintFacets(p *term.Printer, r *db.Result) {
	if rows := FacetRows(r); len(rows) > 0 {
		p.Printf("\n")
		p.PrintTable(FacetColumns, rows)
	}
	for i := range r.Facets {
		if more := r.Facets[i].Distinct - len(r.Facets[i].Counts); more > 0 {
			p.Printf("and %s more of %s\n", term.Thousands(more), term.Plain(r.Facets[i].By))
		}
	}
}

// PrintValues prints the table of the counts of a field, or of labels, as facets does. head is the head of
// the values.
func PrintValues(p *term.Printer, head string, f *db.Facets) {
	var rows [][]any
	for _, n := range Counts(f) {
		rows = append(rows, []any{ValueCell(n.Value), term.CountCell(n.Items)})
	}
	p.PrintTable([]term.Column{term.Left(head), term.Right("items")}, rows)
	printMore(p, f)
}

// PrintLabels prints the table of the counts of labels, without the items that have none, as labels does.
func PrintLabels(p *term.Printer, f *db.Facets) {
	var rows [][]any
	for _, n := range f.Counts {
		label, _ := n.Value.(string)
		rows = append(rows, []any{term.TextCell(label), term.CountCell(n.Items)})
	}
	p.PrintTable([]term.Column{term.Left("label"), term.Right("items")}, rows)
	printMore(p, f)
}

// printMore prints how many counts a limit has left out.
func printMore(p *term.Printer, f *db.Facets) {
	if more := f.Distinct - len(f.Counts); more > 0 {
		p.Printf("and %s more\n", term.Thousands(more))
	}
}

// Counts returns the counts, and if any item lacks a value, last those with the value nil.
func Counts(f *db.Facets) []db.FacetCount {
	if f.Missing == 0 {
		return f.Counts
	}
	return append(f.Counts[:len(f.Counts):len(f.Counts)], db.FacetCount{Items: f.Missing})
}

// ValueCell returns the cell of a value: for people, and in data as JSON has numbers.
func ValueCell(v any) any {
	switch v := v.(type) {
	case nil:
		return term.NewCell("null", "")
	case string:
		return v
	case time.Time:
		return term.Value(v)
	}
	b, err := json.Marshal(v)
	if err != nil { // no float that is stored: these are finite
		return v
	}
	return term.NewCell(string(b), string(b))
}
