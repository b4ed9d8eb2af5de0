package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/importer"
	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/table"
	"github.com/fddhdb/fddhdb/internal/rows"
)

// Texts is a file of texts: a text file with a text a line, or a table with a column of texts. A text has the
// key of its row in the table. Without such a key its number is the key, counted from 1.
type Texts struct {
	hashed
	rows.Source
	table *importer.File // nil: a text file
	field string         // that has the text of an item, as long as it has no code
	keep  bool           // the field stays
	n     int            // number of texts read
}

// OpenTexts opens a file of texts. The column, and the options, are of a table.
func OpenTexts(in Input, hash, column string, o importer.Options) (*Texts, error) {
	s := &Texts{hashed: hashed{flag: "--texts", given: hash}, field: importer.FieldName(column)}
	if err := s.choose(cmp.Or(hash, "simhash")); err != nil {
		return nil, err
	}
	if files.Extension(in.Path) == ".txt" {
		lines, err := files.ReadLines(in.Path)
		s.Source = &listed{file: in.Name, rows: len(lines), add: func(item *db.Item, row int) error {
			item.Fields = map[string]any{s.field: lines[row]}
			return nil
		}}
		return s, err
	}
	switch ext := files.Extension(in.Path); {
	case files.IsArrow(in.Path):
		return nil, exit.Usagef("--texts %s: %s", in.Name, files.ArrowAdvice)
	case ext != ".jsonl" && ext != ".csv" && ext != ".parquet":
		return nil, exit.Usagef("--texts %s: .txt, .jsonl, .json, .csv and .parquet files are read, not %s", in.Name,
			term.FileKind(in.Path))
	}
	r, err := files.OpenTable(in.Path, in.Name)
	if err != nil {
		return nil, err
	}
	columns, err := r.Columns()
	if err == nil && !slices.ContainsFunc(columns, func(c table.Column) bool { return c.Name == column }) {
		var names []string
		for _, c := range columns {
			names = append(names, fmt.Sprintf("%q", c.Name))
		}
		err = exit.Usagef("--text-column: %s has no column %q: there is %s", in.Name, column, listStart(names, 20))
	}
	if err != nil {
		_ = r.Close() // nothing was written
		return nil, err
	}
	text := importer.Mapped{Column: column}
	s.keep = slices.Contains(o.Mapping.Fields, text)
	if !s.keep { // only columns that are named become fields
		o.Mapping.Fields = append([]importer.Mapped{text}, o.Mapping.Fields...)
	}
	o.IgnoreUnknown, o.Merge = true, false // a text without a key has its number
	s.table = importer.New(r, in.Name, o)
	s.Source = s.table
	return s, nil
}

// Schema returns the schema of a collection for the texts.
func (s *Texts) Schema() (db.Schema, error) {
	out := s.hashed.schema()
	if s.table == nil {
		return out, nil
	}
	of, err := s.table.Schema()
	var none *importer.NoVectorsError
	if err != nil && !errors.As(err, &none) {
		return out, err
	}
	out.Fields = slices.DeleteFunc(of.Fields, func(f db.Field) bool { return f.Name == s.field && !s.keep })
	return out, nil
}

// Check takes the schema of the collection.
func (s *Texts) Check(_ context.Context, c api.Collection, schema db.Schema) error {
	if err := s.hashed.check(c, schema); err != nil {
		return err
	}
	s.keep = slices.ContainsFunc(schema.Fields, func(f db.Field) bool {
		return f.Name == s.field && f.Type == db.String
	})
	if s.table == nil {
		return nil
	}
	if !s.keep {
		schema.Fields = append(slices.Clone(schema.Fields), db.Field{Name: s.field, Type: db.String})
	}
	return s.table.Check(c.Name(), schema)
}

// Repeats reports whether an earlier row has the key of the last one.
func (s *Texts) Repeats() bool { return s.table != nil && s.table.Repeats() }

// Next implements rows.Source.
func (s *Texts) Next(item *db.Item) error {
	err := s.Source.Next(item)
	s.n++
	if err != nil && err != rows.ErrDuplicate {
		return err
	}
	if item.Key == "" {
		item.Key = strconv.Itoa(s.n)
	}
	text, _ := item.Fields[s.field].(string)
	if !s.keep {
		delete(item.Fields, s.field)
	}
	item.Code = s.hash.OfText(text)
	if !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return &rows.Error{Err: fmt.Errorf("%s: the text %q has no word", s.Path(), item.Key)}
	}
	return err
}
