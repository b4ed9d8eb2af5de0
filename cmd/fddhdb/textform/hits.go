package textform

import (
	"math"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// A HitTable says which columns a table of hits has besides rank and key.
type HitTable struct {
	Codes      bool // else the answer is by vectors, and hits have neither distance nor score
	Similarity bool
	Labels     bool
	Fields     []db.Field
}

// NewHitTable returns the form of a table of the parts of items that are included.
func NewHitTable(schema db.Schema, include db.Include) HitTable {
	t := HitTable{Labels: include&db.IncludeLabels != 0}
	if include&db.IncludeFields != 0 {
		t.Fields = schema.Fields
	}
	return t
}

// HasSimilarity reports whether any hit has a similarity.
func HasSimilarity(r *db.Result) bool {
	return slices.ContainsFunc(r.Hits, func(h db.Hit) bool { return !math.IsNaN(float64(h.Similarity)) })
}

// Columns returns the columns.
func (t *HitTable) Columns() []term.Column {
	columns := []term.Column{term.Right("rank"), term.Left("key")}
	if t.Codes {
		columns = append(columns, term.Right("distance"), term.Right("score"))
	}
	if t.Similarity {
		columns = append(columns, term.Right("similarity"))
	}
	if t.Labels {
		columns = append(columns, term.Left("labels"))
	}
	return append(columns, FieldColumns(t.Fields)...)
}

// Rows returns a row for each hit.
func (t *HitTable) Rows(r *db.Result) [][]any {
	var rows [][]any
	for i, h := range r.Hits {
		score := term.NoCell
		if !math.IsNaN(h.Score) {
			score = term.NumberCell(h.Score, 3)
		}
		row := []any{i + 1, term.TextCell(h.Key)}
		if t.Codes {
			row = append(row, h.Distance, score)
		}
		if t.Similarity {
			row = append(row, term.SimilarityCell(h.Similarity))
		}
		it := h.Item
		if it == nil {
			it = new(db.Item)
		}
		if t.Labels {
			row = append(row, term.TextCell(strings.Join(it.Labels, ",")))
		}
		rows = append(rows, append(row, FieldCells(t.Fields, it)...))
	}
	return rows
}
