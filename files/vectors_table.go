package files

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/table"
)

// vectorsTable is the format of a file of vectors alone as a table of one column, and its cell.
type vectorsTable struct {
	*Vectors
	name string // of the column

	x      []float32
	sparse table.Sparse
	bad    error // of the row
}

// openVectorsTable opens a file of vectors as a table. The column has the name of the member, or of the file.
func openVectorsTable(path, name string) (*table.Table, error) {
	v, err := Open(path, name)
	if err != nil {
		return nil, err
	}
	file, member := Cut(path)
	if member == "" {
		file, _ = matrix.Inner(file)
		member = filepath.Base(file)
	}
	t := &vectorsTable{Vectors: v, name: strings.TrimSuffix(member, filepath.Ext(member))}
	if !v.Sparse {
		t.x = make([]float32, v.Cols)
	}
	return table.New(name, t), nil
}

// The methods of table.Rows.

func (t *vectorsTable) Count() int                      { return t.Vectors.Rows }
func (t *vectorsTable) Line() int                       { return 0 }
func (t *vectorsTable) Map([]table.Column, []table.Use) {}

func (t *vectorsTable) Columns() ([]table.Column, error) {
	c := table.Column{Name: t.name, Kind: table.Numbers, Type: "lists of numbers", Dim: t.Cols}
	if t.Vectors.Sparse {
		c.Kind, c.Type = table.SparseVectors, "sparse vectors"
	}
	return []table.Column{c}, nil
}

func (t *vectorsTable) Next(take func(column int, is table.Is, c table.Cell) error) (bad, err error) {
	is := table.List
	if t.Vectors.Sparse {
		is = table.Entries
		t.sparse.Index, t.sparse.Value, err = t.NextSparse(t.sparse.Index[:0], t.sparse.Value[:0])
	} else {
		err = t.Vectors.Next(t.x)
	}
	var e *Error
	if t.bad = nil; errors.As(err, &e) && e.Row >= 0 {
		t.bad, err = matrix.Bad(e.Col, e.Err), nil
	}
	if err != nil {
		return nil, err
	}
	return take(0, is, t), nil
}

// The methods of table.Cell: the value is a vector, and nothing else.

func (t *vectorsTable) Text() ([]byte, error) { return nil, errors.ErrUnsupported }
func (t *vectorsTable) List(func(table.Is, []byte) bool) (int, error) {
	return 0, errors.ErrUnsupported
}
func (t *vectorsTable) Value(string) (any, error) { return nil, errors.ErrUnsupported }
func (t *vectorsTable) Float32() (float32, error) { return 0, errors.ErrUnsupported }

func (t *vectorsTable) Floats(dst []float32) ([]float32, error) {
	return append(slices.Grow(dst, len(t.x)), t.x...), t.bad
}

func (t *vectorsTable) Entries(x *table.Sparse) error {
	x.Index, x.Value = append(x.Index, t.sparse.Index...), append(x.Value, t.sparse.Value...)
	return t.bad
}
