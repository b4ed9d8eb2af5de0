package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// printItem prints an item, as fddhdb get does.
func (e *env) printItem(it *db.Item) error {
	if e.json {
		return e.PrintJSON(it)
	}
	e.Printf("%s\n", term.Plain(it.Key))
	line := func(name, format string, args ...any) {
		e.Printf("  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	if len(it.Labels) > 0 {
		line("labels", "%s", term.Plain(strings.Join(it.Labels, ", ")))
	}
	for _, name := range slices.Sorted(maps.Keys(it.Fields)) {
		line("field", "%s = %s", name, term.Plain(term.Value(it.Fields[name])))
	}
	for _, name := range slices.Sorted(maps.Keys(it.Vectors)) {
		x := it.Vectors[name]
		line("vector", "%s, %s", name, numbersOf(len(x), "number", "numbers", func(i int) string { return fmt.Sprintf("%.4g", x[i]) }))
	}
	for _, name := range slices.Sorted(maps.Keys(it.Sparse)) {
		x := it.Sparse[name]
		line("vector", "%s, %s", name, numbersOf(len(x.Index), "number not 0", "numbers not 0", func(i int) string {
			return fmt.Sprintf("%d:%.4g", x.Index[i], x.Value[i])
		}))
	}
	for _, name := range it.Modalities {
		line("vector", "%s, not in this copy", name)
	}
	if len(it.Code) > 0 {
		line("code", "%s, %s", hex.EncodeToString(it.Code), codeOrigin(it.CodeFrom))
	}
	for _, to := range slices.Sorted(maps.Keys(it.Codes)) {
		line("code", "for %s: %s, %s", to, hex.EncodeToString(it.Codes[to].Code), codeOrigin(it.Codes[to].From))
	}
	if len(it.Payload) > 0 {
		line("payload", "%s", term.Size(int64(len(it.Payload))))
	}
	return nil
}

// codeOrigin returns the origin of a code in words.
func codeOrigin(from string) string {
	switch from {
	case "given":
		return "given"
	case "fused":
		return "from its vectors"
	}
	return "from its " + from
}

// numbersOf returns how many numbers there are, and the first of them.
func numbersOf(n int, one, many string, number func(i int) string) string {
	const most = 6
	text := term.Plural(n, one, many)
	for i := range min(most, n) {
		if i == 0 {
			text += ":"
		}
		text += " " + number(i)
	}
	if n > most {
		text += " ..."
	}
	return text
}

// fieldColumns returns a column for each field.
func fieldColumns(fields []db.Field) (columns []term.Column) {
	for _, f := range fields {
		if f.Type == db.Int || f.Type == db.Float {
			columns = append(columns, term.Right(f.Name))
		} else {
			columns = append(columns, term.Left(f.Name))
		}
	}
	return columns
}

// fieldCells returns the cells of an item for these columns.
func fieldCells(fields []db.Field, it *db.Item) (cells []any) {
	for _, f := range fields {
		switch x := it.Fields[f.Name].(type) {
		case nil:
			cells = append(cells, term.NoCell)
		case string:
			cells = append(cells, term.NewCell(term.Plain(x), x))
		case time.Time:
			cells = append(cells, term.Value(x))
		default:
			cells = append(cells, x)
		}
	}
	return cells
}

// withMissing returns the counts, and if any item lacks a value, last those with the value nil.
func withMissing(f *db.Facets) []db.FacetCount {
	if f.Missing == 0 {
		return f.Counts
	}
	return append(f.Counts[:len(f.Counts):len(f.Counts)], db.FacetCount{Items: f.Missing})
}

// valueCell returns the cell of a value: for people, and in data as JSON has numbers.
func valueCell(v any) any {
	switch v := v.(type) {
	case nil:
		return term.NewCell("null", "")
	case string:
		return term.NewCell(term.Plain(v), v)
	case time.Time:
		return term.Value(v)
	}
	b, err := json.Marshal(v)
	if err != nil { // no float that is stored: these are finite
		return v
	}
	return term.NewCell(string(b), string(b))
}
