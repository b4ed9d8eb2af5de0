package text

import (
	"fmt"
	"io"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/table"
)

// Shape reads all lines. It only counts the numbers of dense vectors.
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
	var b shapeBuilder
	var it table.Item
	for {
		line, err := r.next()
		if err == io.EOF {
			return b.done(r.rows), nil
		}
		if err != nil {
			return nil, err
		}
		// A line that is no item tells nothing about the others.
		if r.item.decode(line, &it) != nil {
			continue
		}
		if err := b.add(r.item.vectors, r.item.fields, len(it.Code)); err != nil {
			return nil, r.Fail(err)
		}
	}
}

// A shapeBuilder makes a shape from items.
type shapeBuilder struct {
	shape   table.Shape
	vectors map[string]int  // name -> position in shape.Vectors
	fields  map[string]int  // name -> position in shape.Fields
	dense   map[string]bool // name -> some vector is dense
	codes   int             // items with a code
}

// add adds an item; code is the length of its code in bytes.
func (b *shapeBuilder) add(vectors []size, fields []table.Field, code int) error {
	if b.vectors == nil {
		b.vectors, b.fields, b.dense = map[string]int{}, map[string]int{}, map[string]bool{}
	}
	for _, v := range vectors {
		if err := b.vector(v); err != nil {
			return err
		}
	}
	for _, f := range fields {
		if err := b.field(f); err != nil {
			return err
		}
	}
	if code > 0 {
		if b.codes > 0 && b.shape.Code != code {
			return fmt.Errorf("has a code of %d bits, items before it have codes of %d", 8*code, 8*b.shape.Code)
		}
		b.shape.Code = code
		b.codes++
	}
	return nil
}

func (b *shapeBuilder) vector(v size) error {
	if v.dim < 1 || v.dim > matrix.MaxCols {
		return fmt.Errorf("vectors: %q has %d numbers, 1 to %d are possible", v.name, v.dim, matrix.MaxCols)
	}
	i, ok := b.vectors[v.name]
	if !ok {
		b.vectors[v.name] = len(b.shape.Vectors)
		b.dense[v.name] = !v.sparse
		b.shape.Vectors = append(b.shape.Vectors, table.Vector{Name: v.name, Dim: v.dim, Sparse: v.sparse})
		return nil
	}
	have := &b.shape.Vectors[i]
	switch {
	case v.sparse && !b.dense[v.name]:
		have.Dim = max(have.Dim, v.dim)
	case v.sparse && v.dim > have.Dim:
		return fmt.Errorf("vectors: %q has a number in column %d, vectors before it have %d numbers", v.name, v.dim-1, have.Dim)
	case v.sparse:
	case !b.dense[v.name] && v.dim < have.Dim, b.dense[v.name] && v.dim != have.Dim:
		return fmt.Errorf("vectors: %q has %d numbers, vectors before it have %d", v.name, v.dim, have.Dim)
	default:
		b.dense[v.name] = true
		have.Dim, have.Sparse = v.dim, false
	}
	return nil
}

func (b *shapeBuilder) field(f table.Field) error {
	i, ok := b.fields[f.Name]
	if !ok {
		b.fields[f.Name] = len(b.shape.Fields)
		b.shape.Fields = append(b.shape.Fields, f)
		return nil
	}
	have := &b.shape.Fields[i]
	switch {
	case have.Type == f.Type:
	case have.Type == "int" && f.Type == "float", have.Type == "float" && f.Type == "int":
		have.Type = "float"
	case have.Type == "string" && f.Type == "time", have.Type == "time" && f.Type == "string":
		have.Type = "string"
	default:
		return fmt.Errorf("fields: %q is of type %s here and of type %s before", f.Name, f.Type, have.Type)
	}
	return nil
}

// done returns the shape of so many items.
func (b *shapeBuilder) done(items int) *table.Shape {
	if b.codes < items {
		b.shape.Code = 0
	}
	return &b.shape
}
