package command

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// title returns the name of a query for people.
func (o *searchOptions) title(name queryName) string {
	switch {
	case o.key != "":
		return "item " + term.Plain(o.key)
	case o.code != "":
		return fmt.Sprintf("code %s", name)
	case o.vector != "":
		return "vector"
	case len(o.texts) > 0:
		return fmt.Sprintf("text %s", term.Plain(fmt.Sprint(name)))
	case len(o.images) > 0:
		return fmt.Sprintf("file %s", term.Plain(fmt.Sprint(name)))
	}
	return fmt.Sprintf("row %d", name)
}

func (e *env) printHits(name queryName, r *db.Result, o *searchOptions, form hitTable) {
	e.Printf("%s", o.title(name))
	switch {
	case o.hasRadius && r.Total > len(r.Hits) && len(r.Hits) < o.k && r.Next == "":
		// In the order of features the total is of all, however similar.
		e.Printf(": %s of %s within %s", term.Thousands(len(r.Hits)), term.Plural(r.Total, "item", "items"), term.Plural(o.radius, "bit", "bits"))
	case o.hasRadius && r.Total > len(r.Hits):
		e.Printf(": the first %s of %s within %s; -k prints more", term.Thousands(len(r.Hits)),
			term.Plural(r.Total, "item", "items"), term.Plural(o.radius, "bit", "bits"))
	case o.hasRadius:
		e.Printf(": %s within %s", term.Plural(r.Total, "item", "items"), term.Plural(o.radius, "bit", "bits"))
	case len(r.Hits) == 0:
		e.Printf(": no items")
	}
	e.Printf("\n")
	if len(r.Hits) == 0 {
		return
	}
	form.similarity = hasSimilarity(r)
	e.PrintTable(form.columns(), form.rows(r))
}

// A hitTable says which columns a table of hits has besides rank and key.
type hitTable struct {
	codes      bool // else the answer is by vectors, and hits have neither distance nor score
	similarity bool
	labels     bool
	fields     []db.Field
}

// newHitTable returns the form of a table of the parts of items that are included.
func newHitTable(schema db.Schema, include db.Include) hitTable {
	t := hitTable{labels: include&db.IncludeLabels != 0}
	if include&db.IncludeFields != 0 {
		t.fields = schema.Fields
	}
	return t
}

// hasSimilarity reports whether any hit has a similarity.
func hasSimilarity(r *db.Result) bool {
	return slices.ContainsFunc(r.Hits, func(h db.Hit) bool { return !math.IsNaN(float64(h.Similarity)) })
}

func (t *hitTable) columns() []term.Column {
	columns := []term.Column{term.Right("rank"), term.Left("key").NamedInCSV("id")}
	if t.codes {
		columns = append(columns, term.Right("distance"), term.Right("score"))
	}
	if t.similarity {
		columns = append(columns, term.Right("similarity"))
	}
	if t.labels {
		columns = append(columns, term.Left("labels"))
	}
	return append(columns, fieldColumns(t.fields)...)
}

func (t *hitTable) rows(r *db.Result) [][]any {
	var rows [][]any
	for i, h := range r.Hits {
		score := term.NoCell
		if !math.IsNaN(h.Score) {
			score = term.NumberCell(h.Score, 3)
		}
		row := []any{i + 1, term.TextCell(h.Key)}
		if t.codes {
			row = append(row, h.Distance, score)
		}
		if t.similarity {
			row = append(row, term.SimilarityCell(h.Similarity))
		}
		if t.labels {
			row = append(row, term.TextCell(strings.Join(h.Item.Labels, ",")))
		}
		if t.fields != nil {
			row = append(row, fieldCells(t.fields, h.Item)...)
		}
		rows = append(rows, row)
	}
	return rows
}

// hasRows reports whether queries are rows of a file.
func (o *searchOptions) hasRows() bool { return o.vectors != "" || o.codes != "" }

// hasVectors reports whether queries are vectors that are given, or made for the search.
func (o *searchOptions) hasVectors() bool { return o.vectors != "" || o.vector != "" || o.encodes() }

// queryColumn returns the column of the query, of a table of several.
func (o *searchOptions) queryColumn() term.Column {
	if o.hasRows() {
		return term.Right("query")
	}
	return term.Left("query")
}

// facetColumns are the columns of facetRows.
var facetColumns = []term.Column{term.Left("facet"), term.Left("value"), term.Right("items")}

// facetRows returns a row for each count of an answer.
func facetRows(r *db.Result) (rows [][]any) {
	for i := range r.Facets {
		for _, n := range withMissing(&r.Facets[i]) {
			rows = append(rows, []any{term.TextCell(r.Facets[i].By), valueCell(n.Value), term.CountCell(n.Items)})
		}
	}
	return rows
}

// printFacets prints the counts of an answer, if the user asked for some.
func (e *env) printFacets(r *db.Result) {
	if rows := facetRows(r); len(rows) > 0 {
		e.Printf("\n")
		e.PrintTable(facetColumns, rows)
	}
	for i := range r.Facets {
		if more := r.Facets[i].Distinct - len(r.Facets[i].Counts); more > 0 {
			e.Printf("and %s more of %s\n", term.Thousands(more), term.Plain(r.Facets[i].By))
		}
	}
}

// printExplain prints how a search was done, if the user asked for it, and why by vectors where it
// was.
func (e *env) printExplain(x *db.Explain, why string) {
	if x == nil {
		return
	}
	if len(x.ScannedFields) > 0 {
		e.Printf("filter without an index of %s: their values are read from the items\n", strings.Join(x.ScannedFields, ", "))
	}
	byVectors := x.Metric != ""
	if byVectors {
		e.printVectorPlan(x, why)
		e.Printf("took %.1f us for %s by the metric %s between vectors of %s\n", x.ResolveUS, term.Plural(x.Hits, "item", "items"), x.Metric, strings.Join(x.Modalities, ", "))
		if len(x.Predicted) > 0 {
			e.printPredicted(x.Predicted)
		}
		return
	}
	e.Printf("plan %s: %s of %s found", x.Plan, term.Plural(x.Codes, "code", "codes"), term.Thousands(x.Distinct))
	if x.Probes > 0 {
		e.Printf("; %s with %s, %s compared", term.Plural(x.Probes, "lookup", "lookups"), term.Plural(x.Candidates, "candidate", "candidates"), term.Thousands(x.Compared))
	}
	if x.Scanned > 0 {
		e.Printf("; %s read", term.Plural(x.Scanned, "code", "codes"))
	}
	if x.Abandoned {
		e.Printf("; lookups given up for a scan")
	}
	e.Printf("\n")
	for i, tables := range x.Substrings {
		if i == 0 {
			e.Printf("substrings ")
		}
		e.Printf("%d, ", tables)
	}
	e.Printf("codes not indexed yet %s\n", term.Thousands(x.Tail))
	e.Printf("took %.1f us to encode, %.1f us to find the codes, %.1f us for %s in the order %s\n",
		x.EncodeUS, x.SearchUS, x.ResolveUS, term.Plural(x.Hits, "item", "items"), x.Rerank)
	e.printPredicted(x.Predicted)
}

// printVectorPlan prints the plan of an answer by vectors.
func (e *env) printVectorPlan(x *db.Explain, why string) {
	if x.Plan == "cells" {
		e.Printf("plan cells: %s looked into, %s compared, %s of them exactly; recall %.3f expected\n",
			term.Plural(x.Probes, "cell", "cells"), term.Plural(x.Candidates, "vector", "vectors"), term.Thousands(x.Compared), x.Recall)
		return
	}
	e.Printf("plan vectors: %s compared, %s of them exactly, %s\n", term.Plural(x.Scanned, "vector", "vectors"), term.Thousands(x.Compared), why)
	if x.Abandoned {
		e.Printf("%s looked into first, and given up as they took too long\n", term.Plural(x.Probes, "cell", "cells"))
	}
}

// printPredicted prints the microseconds that each plan was predicted to take, the fastest first.
func (e *env) printPredicted(us map[string]float64) {
	plans := slices.SortedFunc(maps.Keys(us), func(a, b string) int {
		return cmp.Compare(us[a], us[b])
	})
	e.Printf("predicted")
	for i, plan := range plans {
		sep := ""
		if i > 0 {
			sep = ","
		}
		e.Printf("%s %s %.1f us", sep, plan, us[plan])
	}
	e.Printf("\n")
}
