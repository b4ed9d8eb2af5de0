package command

import (
	"encoding/hex"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

// An itemTable prints items without their vectors and payloads, a row each.
type itemTable struct {
	table   *printedTable
	fields  []string
	targets []string // each has codes of its own
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
	t := &itemTable{}
	columns := []column{left("key"), left("labels")}
	for _, f := range schema.Fields {
		t.fields = append(t.fields, f.Name)
		if f.Type == db.Int || f.Type == db.Float {
			columns = append(columns, right(f.Name))
		} else {
			columns = append(columns, left(f.Name))
		}
	}
	for _, v := range stats.Views {
		t.targets = append(t.targets, v.Target)
		columns = append(columns, left("code for "+v.Target), left("code from"))
	}
	if len(t.targets) == 0 {
		columns = append(columns, left("code"), left("code from"))
	}
	t.table = e.newTable(columns)
	return t, nil
}

func (t *itemTable) add(it *db.Item) {
	cells := []any{textCell(it.Key), textCell(strings.Join(it.Labels, ","))}
	for _, name := range t.fields {
		switch x := it.Fields[name].(type) {
		case nil:
			cells = append(cells, noCell)
		case string:
			cells = append(cells, newCell(plain(x), x))
		default:
			cells = append(cells, x)
		}
	}
	for _, to := range t.targets {
		code := it.Codes[to]
		cells = append(cells, textCell(hex.EncodeToString(code.Code)), textCell(code.From))
	}
	if len(t.targets) == 0 {
		cells = append(cells, textCell(hex.EncodeToString(it.Code)), textCell(it.CodeFrom))
	}
	t.table.add(cells...)
}

// itemPrinter returns what prints items as the user wants them: as JSON, as rows of a
// table, or else as people do. end ends the table.
func (e *env) itemPrinter(c *db.Collection, asJSON bool, people func(*db.Item)) (print func(*db.Item) error, end func(), err error) {
	if asJSON {
		return e.printItemJSON, func() {}, nil
	}
	if !e.flat() {
		return func(it *db.Item) error { people(it); return nil }, func() {}, nil
	}
	t, err := e.newItemTable(c)
	if err != nil {
		return nil, nil, err
	}
	return func(it *db.Item) error { t.add(it); return nil }, t.table.end, nil
}
