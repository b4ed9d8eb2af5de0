package command

import (
	"encoding/hex"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

// flat says that everything goes into one table: there are no headings between.
func (l *layout) flat() bool {
	return l.mode == modeCSV || l.mode == modeMarkdown || l.mode == modeLine
}

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
	columns := []column{{"key", false}, {"labels", false}}
	for _, f := range schema.Fields {
		t.fields = append(t.fields, f.Name)
		columns = append(columns, column{f.Name, f.Type == db.Int || f.Type == db.Float})
	}
	for _, v := range stats.Views {
		t.targets = append(t.targets, v.Target)
		columns = append(columns, column{"code for " + v.Target, false}, column{"code from", false})
	}
	if len(t.targets) == 0 {
		columns = append(columns, column{"code", false}, column{"code from", false})
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
			cells = append(cells, cell{plain(x), x})
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
	if !e.layout.flat() {
		return func(it *db.Item) error { people(it); return nil }, func() {}, nil
	}
	t, err := e.newItemTable(c)
	if err != nil {
		return nil, nil, err
	}
	return func(it *db.Item) error { t.add(it); return nil }, t.table.end, nil
}
