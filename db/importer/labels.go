package importer

import (
	"io"
	"slices"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/table"
)

// ReadLabels is files.ReadLabels, and reads a .parquet, too: FILE.parquet:COLUMN is a column of labels, and
// FILE.parquet the column that Import would take for one.
func ReadLabels(path string) (*files.Labels, error) {
	file, column := files.Cut(path)
	if files.Extension(file) != ".parquet" {
		return files.ReadLabels(path)
	}
	t, err := files.OpenTable(file, file)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	columns, err := t.Columns()
	if err != nil {
		return nil, err
	}
	m := newMapper(file, columns, &Options{}, nil)
	if column != "" {
		err = m.name(path, column, table.Use{Role: table.AsLabels})
	} else if m.guessLabels(); !slices.Contains(m.done, true) {
		err = fault.Invalid("%s: say which column has the labels: %[1]s:COLUMN", file)
	}
	if err == nil {
		err = t.Map(m.uses)
	}
	var sets [][]string
	for err == nil {
		var item table.Item
		if err = t.Next(&item); err == nil {
			sets = append(sets, item.Labels)
		}
	}
	if err != io.EOF {
		return nil, err
	}
	return files.NewLabels(sets), nil
}
