package textform

import (
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// FieldColumns returns a column for each field.
func FieldColumns(fields []db.Field) (columns []term.Column) {
	for _, f := range fields {
		if f.Type == db.Int || f.Type == db.Float {
			columns = append(columns, term.Right(f.Name))
		} else {
			columns = append(columns, term.Left(f.Name))
		}
	}
	return columns
}

// FieldCells returns the cells of an item for these columns.
func FieldCells(fields []db.Field, it *db.Item) (cells []any) {
	for _, f := range fields {
		switch x := it.Fields[f.Name].(type) {
		case nil:
			cells = append(cells, term.NoCell)
		case time.Time:
			cells = append(cells, term.Value(x))
		default:
			cells = append(cells, x)
		}
	}
	return cells
}
