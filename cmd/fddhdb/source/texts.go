package source

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/table"
)

// Texts is a file of texts: a text file with a text a line, or a table with a column of texts. A text has the
// key of its row in the table. Without such a key its number is the key, counted from 1.
type Texts struct {
	hashed
	Source
	table *Items // nil: a text file
	field string // that has the text of an item, as long as it has no code
	keep  bool   // the field stays
	n     int    // number of texts read
}

// OpenTexts opens a file of texts. The column, and the mapping of further columns, are of a table.
func OpenTexts(in Input, hash, column string, say Mapping) (*Texts, error) {
	s := &Texts{hashed: hashed{flag: "--texts", given: hash}, field: fieldName(column)}
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
	if err := tableFile("--texts", in, ".txt", ".jsonl", ".json", ".csv", ".parquet"); err != nil {
		return nil, err
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
	s.keep = slices.Contains(say.Fields, column)
	if !s.keep { // only columns that are named become fields
		say.Fields = append([]string{column}, say.Fields...)
	}
	s.table = newItems(in, r, say, true)
	s.Source = s.table
	return s, nil
}

// Schema returns the schema of a collection for the texts.
func (s *Texts) Schema() (db.Schema, error) {
	out := s.hashed.schema()
	if s.table == nil {
		return out, nil
	}
	if err := s.table.assign(nil); err != nil {
		return out, err
	}
	shape, err := s.table.r.Shape()
	for _, f := range shape.Fields {
		if f.Name != s.field || s.keep {
			out.Fields = append(out.Fields, db.Field{Name: f.Name, Type: db.FieldType(f.Type)})
		}
	}
	return out, err
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
	return s.table.Check(c, schema, false)
}

func (s *Texts) again() bool { return s.table != nil && s.table.again() }

func (s *Texts) next(item *db.Item) error {
	err := s.Source.next(item)
	s.n++
	if err != nil {
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
		return &RowError{fmt.Errorf("%s: the text %q has no word", s.Path(), item.Key)}
	}
	return nil
}
