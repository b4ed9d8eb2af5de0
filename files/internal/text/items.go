package text

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fddhdb/fddhdb/files/internal/jsontext"
	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/table"
	"github.com/fddhdb/fddhdb/internal/instant"
)

// items are the lines of a .jsonl of whole items.
type items struct {
	*known
	item decoder
	err  error // the final error
}

// OpenItems opens a .jsonl of whole items. It is a *table.Table if its first lines are of one.
func OpenItems(src matrix.Source) (table.Items, error) {
	lines, err := count(src, Whole)
	if err != nil {
		return nil, err
	}
	is := isTable(lines)
	if lines.rewind(Whole); is {
		return table.New(src.Name, &jsonTable{known: lines}), nil
	}
	return &items{known: lines}, nil
}

// OpenJSONLTable opens a .jsonl as a table, whatever its members are.
func OpenJSONLTable(src matrix.Source) (*table.Table, error) {
	lines, err := count(src, Whole)
	if err != nil {
		return nil, err
	}
	return table.New(src.Name, &jsonTable{known: lines}), nil
}

// layoutLines is the number of lines that decide on the layout of a .jsonl file.
const layoutLines = 100

// isTable reports whether the first lines are of a table, whose members are columns, and not of items: no
// line has what only items have, and some line has a member that items have not and that is no object.
func isTable(lines *known) bool {
	foreign := false
	var s jsontext.Scanner
	for range layoutLines {
		line, err := lines.next()
		if err != nil {
			break
		}
		s.Reset(line)
		ours := false
		if s.Kind() != jsontext.Object || s.Object(func(name []byte) error {
			switch string(name) {
			case "vectors", "fields":
				ours = ours || s.Kind() == jsontext.Object
			case "code_from", "codes", "modalities":
				ours = true
			case "key", "labels", "payload", "code":
			default: // an object may be vectors or fields, misspelt
				foreign = foreign || s.Kind() != jsontext.Object
			}
			return s.Skip()
		}) != nil {
			continue
		}
		if ours {
			return false
		}
	}
	return foreign
}

func (r *items) Rows() int { return r.rows }
func (r *items) Line() int { return r.line() }

func (r *items) Next(item *table.Item) error {
	if r.err != nil {
		return r.err
	}
	line, err := r.next()
	if err != nil {
		r.err = err
		return err
	}
	if err := r.item.decode(line, item); err != nil {
		return r.Fail(matrix.OfKey(item.Key, err))
	}
	return nil
}

func (r *items) Fail(err error) error {
	return &matrix.Error{File: r.name, Line: r.Line(), Row: r.N - 1, Col: -1, Err: err}
}

func (r *items) Close() error {
	if errors.Is(r.err, os.ErrClosed) {
		return nil
	}
	r.err = matrix.FileError(r.name, os.ErrClosed)
	return r.src.Close()
}

// Shape reads all lines. It only counts the numbers of dense vectors. The first items say what there is: a
// later one that does not go with them is an error of whoever takes it.
func (r *items) Shape() (*table.Shape, error) {
	if r.err != nil && r.err != io.EOF {
		return nil, r.err
	}
	r.rewind(Whole)
	r.item.measure = true
	defer func() {
		r.item.measure = false
		r.err = nil
		r.rewind(Whole)
	}()
	shape, codes := &table.Shape{}, 0
	vectors, fields := map[string]int{}, map[string]int{} // name -> position in the shape
	var it table.Item
	for {
		line, err := r.next()
		if err == io.EOF {
			if codes < r.rows {
				shape.Code = 0
			}
			return shape, nil
		}
		if err != nil {
			return nil, err
		}
		// A line that is no item tells nothing about the others.
		if r.item.decode(line, &it) != nil {
			continue
		}
		for _, v := range r.item.vectors {
			i, ok := vectors[v.Name]
			switch {
			case v.Dim == 0:
			case !ok:
				vectors[v.Name] = len(shape.Vectors)
				shape.Vectors = append(shape.Vectors, v)
			case shape.Vectors[i].Sparse && !v.Sparse: // a dense one says how many dimensions there are
				shape.Vectors[i] = v
			case shape.Vectors[i].Sparse:
				shape.Vectors[i].Dim = max(shape.Vectors[i].Dim, v.Dim)
			}
		}
		for _, f := range r.item.fields {
			i, ok := fields[f.Name]
			if !ok {
				fields[f.Name] = len(shape.Fields)
				shape.Fields = append(shape.Fields, f)
				continue
			}
			switch have := &shape.Fields[i]; have.Type + " " + f.Type {
			case "int float":
				have.Type = "float"
			case "time string":
				have.Type = "string"
			}
		}
		if len(it.Code) > 0 {
			shape.Code = cmp.Or(shape.Code, len(it.Code))
			codes++
		}
	}
}

// maxKept is the number of vectors whose memory a decoder keeps.
const maxKept = 1000

// A decoder makes items of lines. It reuses the memory of the vectors of the last item.
type decoder struct {
	jsonCell
	dense  map[string][]float32    // memory of dense vectors, by name
	sparse map[string]table.Sparse // memory of sparse vectors, by name
	sorter matrix.Sorter           // sorts their columns

	// measure says that numbers of dense vectors are counted and not read. Then vectors and fields describe
	// the item, in its order.
	measure bool
	vectors []table.Vector
	fields  []table.Field
}

// members are the members of an item.
var members = []string{"key", "vectors", "labels", "fields", "payload", "code", "code_from", "codes",
	"modalities"}

func (d *decoder) decode(line []byte, it *table.Item) error {
	// Every line may have other names, in a file that is not of a collection.
	if d.dense == nil || len(d.dense)+len(d.sparse) > maxKept {
		d.dense, d.sparse = map[string][]float32{}, map[string]table.Sparse{}
	}
	it.Reset()
	d.vectors, d.fields = d.vectors[:0], d.fields[:0]
	s := &d.scan
	s.Reset(line)
	if kind := s.Kind(); kind != jsontext.Object {
		if len(bytes.TrimSpace(line)) == 0 {
			return errors.New("is blank: every line must hold an item; {} is one without anything")
		}
		return fmt.Errorf("is %v, where an item is expected: {\"key\":...,\"vectors\":{...}}", kind)
	}
	seen := 0
	vectorless := false // the line is of an index-only copy
	err := s.Object(func(name []byte) error {
		i := 0
		for i < len(members) && members[i] != string(name) {
			i++
		}
		switch {
		case i == len(members):
			return fmt.Errorf("has a member %s, which items have not: key, vectors, labels, fields, payload and code are possible; values of one's own are in \"fields\"", matrix.Quote(name))
		case seen&(1<<i) != 0:
			return fmt.Errorf("has %s twice", matrix.Quote(name))
		}
		seen |= 1 << i
		if s.Kind() == jsontext.Null {
			return s.Null()
		}
		if err := d.member(members[i], it); err != nil {
			return fmt.Errorf("%s: %w", members[i], err)
		}
		vectorless = vectorless || members[i] == "modalities"
		return nil
	})
	if err == nil {
		err = s.End()
	}
	if err == nil && vectorless {
		err = errors.New("the item comes from an index-only copy and has no vectors here: export it from the database that this is a copy of")
	}
	return err
}

func (d *decoder) member(name string, it *table.Item) (err error) {
	s := &d.scan
	switch name {
	case "key":
		if it.Key, err = s.String(); err == nil && it.Key == "" {
			err = errors.New("is empty: an item needs a key; leave it out for one that is made")
		}
		return err
	case "vectors":
		return s.Object(func(name []byte) error {
			if err := d.vector(string(name), it); err != nil {
				return fmt.Errorf("%s: %w", matrix.Quote(name), err)
			}
			return nil
		})
	case "labels":
		return s.Array(func() error {
			label, err := s.String()
			it.Labels = append(it.Labels, label)
			return err
		})
	case "fields":
		return s.Object(func(name []byte) error {
			if err := d.field(string(name), it); err != nil {
				return fmt.Errorf("%s: %w", matrix.Quote(name), err)
			}
			return nil
		})
	case "payload":
		text, err := s.String()
		if err == nil {
			it.Payload, err = base64.StdEncoding.DecodeString(text)
		}
		if err != nil {
			return fmt.Errorf("is not base64: %w", err)
		}
		return nil
	case "code":
		text, err := s.String()
		if err == nil {
			it.Code, err = hex.DecodeString(text)
		}
		if err != nil {
			return fmt.Errorf("is not hexadecimal: %w", err)
		}
		return nil
	}
	return s.Skip()
}

// vector reads a dense or sparse vector.
func (d *decoder) vector(name string, it *table.Item) (err error) {
	_, dense := it.Vectors[name]
	_, sparse := it.Sparse[name]
	if dense || sparse {
		return errors.New("is there twice")
	}
	s := &d.scan
	switch s.Kind() {
	case jsontext.Null: // no vector of this name
		return s.Null()
	case jsontext.Array:
		if d.measure {
			n, err := s.Count()
			d.vectors = append(d.vectors, table.Vector{Name: name, Dim: n})
			it.Vectors[name] = nil
			return err
		}
		x, err := s.Float32s(d.dense[name][:0], matrix.MaxCols)
		d.dense[name], it.Vectors[name] = x, x
		return err
	case jsontext.Object:
		x := d.sparse[name]
		x.Index, x.Value = x.Index[:0], x.Value[:0]
		if err = scanSparse(s, &x, matrix.MaxCols, true); err == nil {
			err = d.sorter.Sort(&x, false)
		}
		if err != nil {
			return err
		}
		d.sparse[name], it.Sparse[name] = x, x
		if d.measure {
			dim := 1
			if n := len(x.Index); n > 0 {
				dim = int(x.Index[n-1]) + 1
			}
			d.vectors = append(d.vectors, table.Vector{Name: name, Dim: dim, Sparse: true})
		}
		return nil
	}
	return fmt.Errorf("is %v, %w", s.Kind(), errNoVector)
}

// field reads the value of a field.
func (d *decoder) field(name string, it *table.Item) error {
	if _, twice := it.Fields[name]; twice {
		return errors.New("is there twice")
	}
	is, err := d.what()
	if err != nil || is == table.Null { // the field is not set
		return err
	}
	if is == table.List || is == table.Object {
		return fmt.Errorf("is %v, where a string, a number or a bool is expected", is)
	}
	v, err := d.Value("")
	if err != nil {
		return err
	}
	it.Fields[name] = v
	if d.measure {
		d.fields = append(d.fields, table.Field{Name: name, Type: fieldType(v)})
	}
	return nil
}

// fieldType returns the name of the type of a value of a field. Text is a time only in the form in which
// exports write times: then a field of times gives the same text again.
func fieldType(v any) string {
	switch v := v.(type) {
	case string:
		if instant.IsFormatted(v) {
			return "time"
		}
		return "string"
	case bool:
		return "bool"
	case int64:
		return "int"
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			return "int"
		}
	}
	return "float"
}
