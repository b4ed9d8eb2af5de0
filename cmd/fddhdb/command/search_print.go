package command

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
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

func (e *env) printHits(name queryName, r *db.Result, o *searchOptions, form textform.HitTable) {
	e.Printf("%s", o.title(name))
	switch {
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
	form.Similarity = textform.HasSimilarity(r)
	e.PrintTable(form.Columns(), form.Rows(r))
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
	switch {
	case len(x.DamagedIndexes) > 0:
		why = "as the index of " + strings.Join(x.DamagedIndexes, ", ") + " is damaged"
	case len(x.OutgrownIndexes) > 0:
		why = "as too much has changed since the index of " + strings.Join(x.OutgrownIndexes, ", ") + " was made: fddhdb index makes it anew"
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
