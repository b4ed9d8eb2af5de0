package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/forms"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/table"
)

// Items is a file of whole items.
type Items struct {
	file    string
	r       table.Items
	say     Mapping
	lenient bool // ignore values that the collection has no place for

	// Set by assign, if the file is a table.
	columns  []MappedColumn
	note     string
	otherKey string // advice where the key was guessed
	keyless  bool   // no column is the key
	noVector error  // why no column is a vector

	// Set by Check.
	dims   map[string]int
	types  map[string]db.FieldType
	bits   int
	has    string         // what the collection has, in words, for errors
	keys   keySet         // keys so far
	n      int            // number of rows read
	row    table.Item     // the row in hand
	fields map[string]any // memory of its fields
}

// OpenItems opens a file of whole items. The mapping is about the columns of a table. A value that the
// collection has no place for is ignored if lenient, else it is an error.
func OpenItems(in Input, say Mapping, lenient bool) (*Items, error) {
	if err := tableFile("--items", in, ".jsonl", ".json", ".csv", ".parquet", ".npy", ".npz"); err != nil {
		return nil, err
	}
	r, err := files.OpenItems(in.Path, in.Name)
	if err != nil {
		return nil, err
	}
	if _, ok := r.(*table.Table); !ok && !say.empty() {
		_ = r.Close() // nothing was written
		return nil, exit.Usagef("%s has items as export writes them, each member with its meaning: --key-column, --label-column, --label-separator, --vector-column and --field-column are about columns", in.Name)
	}
	return newItems(in, r, say, lenient), nil
}

func newItems(in Input, r table.Items, say Mapping, lenient bool) *Items {
	return &Items{file: in.Name, r: r, say: say, lenient: lenient, keys: keySet{policy: say.Twice},
		fields: map[string]any{}}
}

// tableFile refuses a file of a flag that is no table, by its name.
func tableFile(flag string, in Input, extensions ...string) error {
	file, _ := files.Cut(in.Path)
	if slices.Contains(extensions, files.Extension(file)) {
		return nil
	}
	if files.IsArrow(file) {
		return exit.Usagef("%s %s: %s", flag, in.Name, files.ArrowAdvice)
	}
	last := len(extensions) - 1
	return exit.Usagef("%s %s: %s and %s files are read, not %s", flag, in.Name,
		strings.Join(extensions[:last], ", "), extensions[last], term.FileKind(in.Path))
}

// assign finds out what the columns of a table become, for a collection that is there, or without a schema
// for one that is made of them.
func (s *Items) assign(schema *db.Schema) error {
	t, ok := s.r.(*table.Table)
	if !ok || s.columns != nil {
		return nil
	}
	columns, err := t.Columns()
	if err != nil {
		return err
	}
	m, err := newMapper(s.file, columns, &s.say, schema)
	if err != nil {
		return err
	}
	if schema != nil {
		if err := s.checkColumns(m); err != nil {
			return err
		}
	}
	if err := t.Map(m.uses); err != nil {
		return err
	}
	s.note = m.note()
	s.keyless, s.noVector = m.keyless, m.noVector()
	if m.keyGuessed {
		s.otherKey = ": --key-column names another column of keys"
	}
	s.columns = []MappedColumn{}
	for i, c := range columns {
		of := MappedColumn{c.Name, c.Describe(), becomes(m.uses[i]), c.Example}
		if u := m.uses[i]; u.Role == table.AsElement {
			if u.At > 0 {
				continue
			}
			all := m.elements(u.Name)
			last := columns[all[len(all)-1]].Name
			of.Column, of.Type = c.Name+" to "+last, fmt.Sprintf("%d columns of numbers", len(all))
		}
		s.columns = append(s.columns, of)
	}
	return nil
}

// A MappedColumn says what a column of a table becomes.
type MappedColumn struct {
	Column  string `json:"column"`
	Type    string `json:"type"`
	Becomes string `json:"becomes"`
	Example string `json:"example"`
}

// becomes returns a use in words.
func becomes(u table.Use) string {
	switch u.Role {
	case table.AsKey:
		return "key"
	case table.AsLabels:
		if u.Separator != "" {
			return fmt.Sprintf("labels, between %q", u.Separator)
		}
		return "labels"
	case table.AsLabel:
		return "label " + u.Name
	case table.AsPayload:
		return "payload"
	case table.AsCode:
		return "code"
	case table.AsVector, table.AsElement:
		return "vector " + u.Name
	case table.AsField:
		return "field " + u.Name
	}
	return ""
}

// Mapping returns what the columns of a table become, nil if the file is none.
func (s *Items) Mapping() []MappedColumn { return s.columns }

// Note returns in one line what has been guessed about the columns and could be wrong, "" if nothing has.
func (s *Items) Note() string { return s.note }

// Path implements Source, as do Rows, Close and next.
func (s *Items) Path() string { return s.file }
func (s *Items) Rows() int    { return s.r.Rows() }
func (s *Items) Close() error { return s.r.Close() }

// Schema returns the schema of a collection for the items.
func (s *Items) Schema() (db.Schema, error) {
	var out db.Schema
	if err := s.assign(nil); err != nil {
		return out, err
	}
	shape, err := s.r.Shape()
	if err != nil {
		return out, err
	}
	for _, v := range shape.Vectors {
		out.Modalities = append(out.Modalities, db.Modality{Name: v.Name, Dim: v.Dim, Sparse: v.Sparse})
	}
	for _, f := range shape.Fields {
		out.Fields = append(out.Fields, db.Field{Name: f.Name, Type: db.FieldType(f.Type)})
	}
	if len(out.Modalities) == 0 {
		out.Bits = 8 * shape.Code
	}
	if len(out.Modalities) == 0 && out.Bits == 0 {
		err := s.noVector
		if err == nil {
			if err = s.firstBad(); err != nil {
				return out, exit.Failedf("%w; and the other items do not say what collection to create", err)
			}
			err = exit.Failedf("%s: no item has a vector in \"vectors\", and not all have a \"code\": a collection is made of items with either",
				s.file)
		}
		return out, err
	}
	return out, nil
}

// firstBad returns the error of the first row that is no item, nil if there is none. It reads the file.
func (s *Items) firstBad() error {
	for {
		switch err := s.r.Next(&s.row); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// Check takes the schema of the collection, against which each item is checked. merge says that they are
// merged with items that are there.
func (s *Items) Check(c api.Collection, schema db.Schema, merge bool) error {
	s.dims = make(map[string]int, len(schema.Modalities))
	for _, m := range schema.Modalities {
		s.dims[m.Name] = m.Dim
	}
	s.types = make(map[string]db.FieldType, len(schema.Fields))
	for _, f := range schema.Fields {
		s.types[f.Name] = f.Type
	}
	s.bits = schema.Bits
	s.has = fmt.Sprintf("collection %q has %s", c.Name(), forms.DescribeSchema(schema))
	if err := s.assign(&schema); err != nil {
		return err
	}
	if merge && s.keyless {
		return exit.Usagef("--merge: %s has no column of keys, which say what items to merge with: --key-column NAME names it", s.file)
	}
	return nil
}

// checkColumns checks the columns of a table against the collection before any row is read.
func (s *Items) checkColumns(m *mapper) error {
	for i := range m.uses {
		u, kind, known := &m.uses[i], "", true
		switch u.Role {
		case table.AsVector, table.AsElement:
			kind = "modality"
			_, known = s.dims[u.Name]
		case table.AsField:
			kind = "field"
			_, known = s.types[u.Name]
		case table.AsCode:
			known = s.bits > 0
		}
		if !known && !s.lenient && kind != "" {
			return exit.Failedf("%s: %w", s.file, s.unknown(kind, u.Name))
		}
		if !known {
			*u = table.Use{}
		}
	}
	return nil
}

func (s *Items) next(item *db.Item) error {
	err := s.r.Next(&s.row)
	s.n++
	if err == nil {
		if err = s.take(item); err != nil {
			if item.Key != "" {
				err = fmt.Errorf("key %q: %w", item.Key, err)
			}
			err = s.r.Fail(err)
		} else if err = s.addKey(item.Key); err == ErrDuplicate {
			return err
		} else if err != nil {
			err = s.r.Fail(err)
		}
	}
	return ofRow(err)
}

// addKey refuses a key that an earlier row has.
func (s *Items) addKey(key string) error {
	place, kind := s.n-1, "row"
	if line := s.r.Line(); line > 0 {
		place, kind = line, "line"
	}
	first, err := s.keys.add(key, place)
	if first >= 0 {
		return fmt.Errorf("the key %q is that of %s %d, too%s%s", key, kind, first, s.otherKey, orDuplicate)
	}
	return err
}

func (s *Items) again() bool { return s.keys.again }

// take converts the row in hand to an item of the collection.
func (s *Items) take(item *db.Item) error {
	item.Key, item.Labels, item.Payload = s.row.Key, s.row.Labels, s.row.Payload
	for name, x := range s.row.Vectors {
		dim, ok := s.dims[name]
		switch {
		case ok && len(x) != dim:
			return fmt.Errorf("vectors: %q has %s, the modality has %d", name,
				term.Plural(len(x), "number", "numbers"), dim)
		case ok:
			item.Vectors[name] = x
		case !s.lenient:
			return s.unknown("modality", name)
		}
	}
	for name, x := range s.row.Sparse {
		dim, ok := s.dims[name]
		switch n := len(x.Index); {
		case ok && n > 0 && int(x.Index[n-1]) >= dim:
			return fmt.Errorf("vectors: %q has a number in column %d, the modality has %s", name,
				x.Index[n-1], term.Plural(dim, "dimension", "dimensions"))
		case ok:
			item.Sparse[name] = db.Sparse{Index: x.Index, Value: x.Value}
		case !s.lenient:
			return s.unknown("modality", name)
		}
	}
	item.Code = nil
	if s.bits > 0 {
		if item.Code = s.row.Code; item.Code != nil && 8*len(item.Code) != s.bits {
			return fmt.Errorf("code: has %d bits, the collection has codes of %d", 8*len(item.Code), s.bits)
		}
	}
	clear(s.fields)
	item.Fields = s.fields
	for name, v := range s.row.Fields {
		typ, ok := s.types[name]
		if !ok {
			if s.lenient {
				continue
			}
			return s.unknown("field", name)
		}
		value, err := fieldValue(typ, v)
		if err != nil {
			return fmt.Errorf("fields: %q: %w", name, err)
		}
		s.fields[name] = value
	}
	return nil
}

// unknown returns the error for a name that the collection does not have.
func (s *Items) unknown(kind, name string) error {
	other := ""
	if _, ok := s.r.(*table.Table); ok {
		other = map[string]string{"modality": ", --vector-column MODALITY=COLUMN",
			"field": ", --field-column FIELD=COLUMN"}[kind] + " names another one"
	}
	return fmt.Errorf("there is no %s %q: %s; --ignore-unknown leaves aside what it has not%s", kind, name,
		s.has, other)
}

// fieldValue converts a value of a file to the type of a field.
func fieldValue(typ db.FieldType, v any) (any, error) {
	switch x := v.(type) {
	case string:
		switch typ {
		case db.String:
			return x, nil
		case db.Time:
			return parseTime(x)
		}
	case bool:
		if typ == db.Bool {
			return x, nil
		}
	case json.Number:
		switch typ {
		case db.Int, db.Float:
			return ParseValue(typ, x.String())
		case db.Time:
			return nil, fmt.Errorf("%v is a number, and a time is text, as 2024-05-01T12:30:00Z", v)
		}
	case int64:
		switch typ {
		case db.Int:
			return x, nil
		case db.Float:
			return float64(x), nil
		}
	case float64:
		if typ == db.Float {
			return x, nil
		}
	case time.Time:
		switch typ {
		case db.Time:
			return x, nil
		case db.String:
			return term.Value(x), nil
		}
	}
	return nil, fmt.Errorf("%v is not of type %s", v, typ)
}

// Together are files that belong together: row i of each is about item i.
type Together []Source

// SameRows checks that all files have the same number of rows.
func (in Together) SameRows() error {
	for _, s := range in[1:] {
		if first := in[0]; s.Rows() != first.Rows() {
			return exit.Failedf("%s has %s, %s has %s: row i of every file belongs to item i",
				first.Path(), term.Plural(first.Rows(), "row", "rows"), s.Path(),
				term.Plural(s.Rows(), "row", "rows"))
		}
	}
	return nil
}

// Close closes all files.
func (in Together) Close() {
	for _, s := range in {
		_ = s.Close() // nothing was written
	}
}

// Names returns the names of all files.
func (in Together) Names() string {
	var names []string
	for _, s := range in {
		names = append(names, s.Path())
	}
	return strings.Join(names, ", ")
}

// Rows returns the number of rows, -1 if it is not known before they are read.
func (in Together) Rows() int { return in[0].Rows() }

// NewRow returns an item for sources to add rows to.
func NewRow() db.Item {
	return db.Item{Vectors: map[string][]float32{}, Sparse: map[string]db.Sparse{}}
}

// read reads the next row of all files. It reads all of them even if one is bad, so that they stay in step.
func (in Together) read(item *db.Item) error {
	clear(item.Vectors)
	clear(item.Sparse)
	item.Key = ""
	var bad error
	named := false // bad names the key
	for _, s := range in {
		err := s.next(item)
		var row *RowError
		if err != nil && !errors.As(err, &row) {
			return fmt.Errorf("%w; nothing of it was stored", err)
		}
		if bad == nil && err != nil {
			_, ofKeys := s.(*keyLines)
			bad, named = err, ofKeys || len(in) == 1
		}
	}
	if bad != nil && !named && item.Key != "" {
		return &RowError{fmt.Errorf("%w (key %q)", bad, item.Key)}
	}
	return bad
}

// again reports whether an earlier row has the key of the row that was read last, which replaces it.
func (in Together) again() bool {
	return slices.ContainsFunc(in, func(s Source) bool {
		x, ok := s.(interface{ again() bool })
		return ok && x.again()
	})
}

// Rows go in runs from the goroutine that reads the files to the one that stores them, so that both work at
// the same time and seldom wait for each other.
const (
	runRows  = 128
	runBytes = 4 << 20 // bytes of vectors with which a run is complete
)

// A Row is a row that has been read, or the reason why it could not be.
type Row struct {
	Item    db.Item
	Err     error
	Again   bool      // an earlier row has its key, and it replaces that one
	numbers []float32 // memory of its dense vectors and of the values of sparse ones
	indices []uint32
}

// Set copies an item, as its reader reuses the memory.
func (r *Row) Set(item *db.Item, err error) {
	own := r.Item
	vectors, sparse, fields := own.Vectors, own.Sparse, own.Fields
	if vectors == nil {
		vectors, sparse = map[string][]float32{}, map[string]db.Sparse{}
	}
	if fields == nil {
		fields = map[string]any{}
	}
	clear(vectors)
	clear(sparse)
	clear(fields)
	maps.Copy(fields, item.Fields)
	r.Item, r.Err = *item, err
	// nil stays nil: with --merge it keeps the stored value. An empty slice gets memory of the row: item's
	// own has room that the reader reuses for other rows.
	r.Item.Labels = again(own.Labels, item.Labels)
	r.Item.Code, r.Item.Payload = again(own.Code, item.Code), again(own.Payload, item.Payload)
	if r.Item.Fields != nil {
		r.Item.Fields = fields
	}
	r.numbers, r.indices = r.numbers[:0], r.indices[:0]
	for name, x := range item.Vectors {
		vectors[name] = r.keep(x)
	}
	for name, x := range item.Sparse {
		from := len(r.indices)
		r.indices = append(r.indices, x.Index...)
		sparse[name] = db.Sparse{Index: r.indices[from:len(r.indices):len(r.indices)], Value: r.keep(x.Value)}
	}
	r.Item.Vectors, r.Item.Sparse = vectors, sparse
}

// again returns a copy of x in the memory of own.
func again[T any](own, x []T) []T {
	if x == nil {
		return nil
	}
	if own == nil {
		own = []T{}
	}
	return append(own[:0], x...)
}

func (r *Row) keep(x []float32) []float32 {
	from := len(r.numbers)
	r.numbers = append(r.numbers, x...)
	return r.numbers[from:len(r.numbers):len(r.numbers)]
}

// A rowRun is a run of rows, and the error that ended the reading after them, if any.
type rowRun struct {
	rows []Row
	n    int
	err  error
}

// next returns the row to fill next.
func (run *rowRun) next() *Row {
	if run.n == len(run.rows) {
		run.rows = append(run.rows, Row{})
	}
	run.n++
	return &run.rows[run.n-1]
}

// Pipeline calls f with the rows from number from on, in order, while a goroutine reads ahead. It returns
// when that goroutine has ended.
func (in Together) Pipeline(ctx context.Context, from int, f func(*Row) error) error {
	ctx, cancel := context.WithCancel(ctx)
	full, empty := make(chan *rowRun, 2), make(chan *rowRun, 3)
	for range cap(empty) {
		empty <- &rowRun{}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(full)
		in.readRuns(ctx, from, full, empty)
	}()
	defer func() { // the caller must not close the files before
		cancel()
		<-ended
	}()
	for run := range full {
		for i := range run.n {
			if err := f(&run.rows[i]); err != nil {
				return err
			}
		}
		if run.err != nil {
			return run.err
		}
		empty <- run
	}
	return ctx.Err()
}

// readRuns reads rows until there are no more or the context ends.
func (in Together) readRuns(ctx context.Context, from int, full chan<- *rowRun, empty <-chan *rowRun) {
	item := NewRow()
	rows := in.Rows()
	err := in.leaveOut(ctx, from)
	for row := from; ; {
		var run *rowRun
		select {
		case run = <-empty:
		case <-ctx.Done():
			return
		}
		run.n, run.err = 0, err
		for bytes := 0; run.err == nil && ctx.Err() == nil && run.n < runRows && bytes < runBytes; row++ {
			if rows >= 0 && row >= rows {
				run.err = io.EOF
				break
			}
			err := in.read(&item)
			var bad *RowError
			if err != nil && !errors.As(err, &bad) {
				run.err = err
				break
			}
			r := run.next()
			r.Set(&item, err)
			r.Again = in.again()
			bytes += 4 * len(r.numbers)
		}
		ends := run.err != nil
		if rows < 0 && errors.Is(run.err, io.EOF) || run.err == io.EOF {
			run.err = nil
		}
		select {
		case full <- run:
		case <-ctx.Done():
			return
		}
		if ends {
			return
		}
	}
}

// leaveOut skips the first rows of all files.
func (in Together) leaveOut(ctx context.Context, rows int) error {
	item := NewRow()
	for _, s := range in {
		if v, ok := s.(interface {
			Skip(ctx context.Context, n int) error
		}); ok {
			if err := v.Skip(ctx, rows); err != nil {
				return err
			}
			continue
		}
		for i := range rows {
			if i%1000 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			err := s.next(&item)
			var bad *RowError
			if err != nil && !errors.As(err, &bad) {
				return err
			}
		}
	}
	return nil
}
