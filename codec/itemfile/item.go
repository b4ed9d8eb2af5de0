package itemfile

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	"github.com/fddhdb/fddhdb/codec/vecfile"
)

// An Item is one row of a file. What it points to belongs to the reader that has filled
// it, until its next call.
type Item struct {
	Key     string // "" where the file has none
	Vectors map[string][]float32
	Sparse  map[string]Sparse
	Labels  []string

	// Fields holds string, bool, and numbers: json.Number as .jsonl has them, int64 and
	// float64 where the file knows their types. A field that is null is not in it.
	Fields map[string]any

	Payload []byte
	Code    []byte
}

// Sparse is a vector of which only numbers that are not 0 are there: Value[e] in column
// Index[e], the columns strictly ascending.
type Sparse struct {
	Index []uint32
	Value []float32
}

// Reset makes an item of nothing, whose memory is used again: what a Reader begins with.
func (it *Item) Reset() {
	if it.Vectors == nil {
		it.Vectors, it.Sparse, it.Fields = map[string][]float32{}, map[string]Sparse{}, map[string]any{}
	}
	clear(it.Vectors)
	clear(it.Sparse)
	clear(it.Fields)
	it.Key, it.Labels, it.Payload, it.Code = "", it.Labels[:0], nil, nil
}

// A Reader streams the items of a file, first to last.
type Reader interface {
	// Rows returns the number of items.
	Rows() int

	// Shape says what the items have, in the order in which it comes: what a
	// collection for them needs. It reads a .jsonl file as a whole, from its start, and
	// goes back there.
	Shape() (*Shape, error)

	// Next fills item with the next one, and returns io.EOF after the last. A
	// *vecfile.Error with a Row of 0 or more costs that item only, and the next call goes
	// on; any other is final.
	Next(item *Item) error

	// Fail makes an error about the item that Next returned last, with its place.
	Fail(err error) error

	// Close closes the file. A second Close does nothing.
	Close() error
}

// Open opens a .jsonl file of items, whose lines are counted first. The caller closes it.
func Open(path string) (Reader, error) {
	if !strings.EqualFold(filepath.Ext(path), ".jsonl") {
		return nil, &vecfile.Error{File: path, Row: -1, Col: -1, Err: errors.New("the name does not end in .jsonl, the extension of a file of items")}
	}
	return openJSONL(path)
}

// A Shape is what the items of a file have.
type Shape struct {
	Vectors []Vector
	Fields  []Field
	Code    int // bytes of the code that every item has, 0 where some have none
}

// A Vector is a kind of vectors. Dim is that of all of them or, of sparse ones alone,
// one more than the greatest column.
type Vector struct {
	Name   string
	Dim    int
	Sparse bool // all of them are
}

// A Field is one kind of values: string, int, float or bool.
type Field struct{ Name, Type string }

// fieldType names the type of a value of a field.
func fieldType(v any) string {
	switch v := v.(type) {
	case string:
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
