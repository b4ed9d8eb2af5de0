package table

import "github.com/fddhdb/fddhdb/files/internal/matrix"

// An Item is one row of a file. Its slices and maps belong to the reader that has filled it, and are valid
// until the reader's next call.
type Item struct {
	Key     string               // "" if the file has no key
	Vectors map[string][]float32 // dense vectors, by name
	Sparse  map[string]Sparse    // sparse vectors, by name
	Labels  []string

	// Fields holds strings, bools, numbers and times, by name. Numbers are json.Number from .jsonl, and int64
	// or float64 if the file knows their type; times are text from .jsonl and .csv, else time.Time. Fields
	// that are null are not in it.
	Fields map[string]any

	// nil if the file has none.
	Payload []byte
	Code    []byte
}

// Sparse is a vector that holds only its nonzero numbers: Value[e] in column Index[e]. Columns ascend
// strictly.
type Sparse = matrix.Sparse

// Reset empties the item and keeps its memory; a reader begins with it.
func (it *Item) Reset() {
	if it.Vectors == nil {
		it.Vectors, it.Sparse, it.Fields = map[string][]float32{}, map[string]Sparse{}, map[string]any{}
	}
	clear(it.Vectors)
	clear(it.Sparse)
	clear(it.Fields)
	it.Key, it.Labels, it.Payload, it.Code = "", it.Labels[:0], nil, nil
}

// Items streams the items of a file, first to last.
type Items interface {
	// Rows returns the number of items. Of a Table it may be -1, unknown, before Columns.
	Rows() int

	// Shape returns the vectors and fields of the items, in order of first appearance: what a collection for
	// them needs. It reads a .jsonl file as a whole from its start, and goes back there.
	Shape() (*Shape, error)

	// Next fills item with the next one, and returns io.EOF after the last. A *files.Error with a Row of 0 or
	// more costs only that item, and the next call goes on. Any other error is final.
	Next(item *Item) error

	// Fail returns err as an error about the item that Next returned last, with its place.
	Fail(err error) error

	// Close closes the file. A second Close does nothing.
	Close() error
}

// A Shape describes the items of a file.
type Shape struct {
	Vectors []Vector // in order of first appearance
	Fields  []Field  // in order of first appearance
	Code    int      // bytes of the code that every item has; 0 if some item has none
}

// A Vector is a kind of vectors. Dim is the number of dimensions. If all vectors are sparse it is one more
// than the greatest column.
type Vector struct {
	Name   string
	Dim    int
	Sparse bool // all of them are sparse
}

// A Field is one kind of values: string, int, float, bool or time.
type Field struct{ Name, Type string }
