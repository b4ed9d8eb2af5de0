package command

import (
	"encoding/hex"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
	"github.com/fddhdb/fddhdb/db"
)

// An itemTable prints items without their vectors and payloads, a row each.
type itemTable struct {
	table   *term.Table
	fields  []db.Field
	origins bool // a column after each code says what it was made from: for programs
	any     bool // an item has been added
}

// newItemTable begins a table of the items of a collection.
func (e *env) newItemTable(c *db.Collection) (*itemTable, error) {
	schema, err := c.Schema()
	if err != nil {
		return nil, err
	}
	t := &itemTable{fields: schema.Fields, origins: e.Flat()}
	columns := append([]term.Column{term.Left("key"), term.Left("labels")}, textform.FieldColumns(t.fields)...)
	columns = append(columns, term.Left("code"))
	if t.origins {
		columns = append(columns, term.Left("code from"))
	}
	t.table = e.NewLongTable(columns)
	return t, nil
}

func (t *itemTable) add(it *db.Item) {
	cells := []any{term.TextCell(it.Key), term.TextCell(strings.Join(it.Labels, ","))}
	cells = append(cells, textform.FieldCells(t.fields, it)...)
	cells = append(cells, term.TextCell(hex.EncodeToString(it.Code)))
	if t.origins {
		cells = append(cells, term.TextCell(it.CodeFrom))
	}
	t.table.Add(cells...)
	t.any = true
}

// end ends the table. Without items people and scripts that read text get nothing.
func (t *itemTable) end() {
	if t.any || t.origins {
		t.table.End()
	}
}

// itemPrinter returns a function that prints items as the user wants: as JSON or as rows
// of a table, which end ends.
func (e *env) itemPrinter(c *db.Collection, asJSON bool) (print func(*db.Item) error, end func(), err error) {
	if asJSON {
		return e.printItemJSON, func() {}, nil
	}
	t, err := e.newItemTable(c)
	if err != nil {
		return nil, nil, err
	}
	return func(it *db.Item) error { t.add(it); return nil }, t.end, nil
}

// wholeItemPrinter is itemPrinter for few items, which people see with all that they have.
func (e *env) wholeItemPrinter(c *db.Collection, asJSON bool) (print func(*db.Item) error, end func(), err error) {
	if asJSON || e.Flat() {
		return e.itemPrinter(c, asJSON)
	}
	return func(it *db.Item) error { textform.PrintItem(e.Printer, it); return nil }, func() {}, nil
}
