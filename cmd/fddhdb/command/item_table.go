package command

import (
	"encoding/hex"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// An itemTable prints items without their vectors and payloads, a row each.
type itemTable struct {
	table   *term.Table
	fields  []db.Field
	targets []string // modalities that have codes of their own
}

// newItemTable begins a table of the items of a collection.
func (e *env) newItemTable(c *db.Collection) (*itemTable, error) {
	schema, err := c.Schema()
	if err != nil {
		return nil, err
	}
	stats, err := c.Stats()
	if err != nil {
		return nil, err
	}
	t := &itemTable{fields: schema.Fields}
	columns := append([]term.Column{term.Left("key"), term.Left("labels")}, fieldColumns(t.fields)...)
	for _, v := range stats.Views {
		t.targets = append(t.targets, v.Target)
		columns = append(columns, term.Left("code for "+v.Target), term.Left("code from"))
	}
	if len(t.targets) == 0 {
		columns = append(columns, term.Left("code"), term.Left("code from"))
	}
	t.table = e.NewTable(columns)
	return t, nil
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
		default:
			cells = append(cells, x)
		}
	}
	return cells
}

func (t *itemTable) add(it *db.Item) {
	cells := []any{term.TextCell(it.Key), term.TextCell(strings.Join(it.Labels, ","))}
	cells = append(cells, fieldCells(t.fields, it)...)
	for _, to := range t.targets {
		code := it.Codes[to]
		cells = append(cells, term.TextCell(hex.EncodeToString(code.Code)), term.TextCell(code.From))
	}
	if len(t.targets) == 0 {
		cells = append(cells, term.TextCell(hex.EncodeToString(it.Code)), term.TextCell(it.CodeFrom))
	}
	t.table.Add(cells...)
}

// itemPrinter returns a function that prints items as the user wants: as JSON, as rows
// of a table, or by people. end ends the table.
func (e *env) itemPrinter(c *db.Collection, asJSON bool, people func(*db.Item)) (print func(*db.Item) error, end func(), err error) {
	if asJSON {
		return e.printItemJSON, func() {}, nil
	}
	if !e.Flat() {
		return func(it *db.Item) error { people(it); return nil }, func() {}, nil
	}
	t, err := e.newItemTable(c)
	if err != nil {
		return nil, nil, err
	}
	return func(it *db.Item) error { t.add(it); return nil }, t.table.End, nil
}
