package parquet

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	pq "github.com/parquet-go/parquet-go"

	"github.com/fddhdb/fddhdb/files/table"
	"github.com/fddhdb/fddhdb/internal/instant"
)

// groupBytes is the approximate size of a row group, which is in memory until it is written.
const groupBytes = 64 << 20

// writer writes rows, each column by column: letting the library take rows apart would cost more than
// everything else. The columns of its schema have an order of their own.
type writer struct {
	w      *pq.GenericWriter[any]
	leaves []*pq.ColumnWriter
	row    [][]pq.Value // by leaf: its values of the row in hand, which refer to the item
	leaf   int          // index of the next leaf of the row
	size   int          // bytes of the rows since the last row group
}

// root is a group of columns in the order of add. pq.Group sorts them by name.
type root struct {
	pq.Group
	fields []pq.Field
}

func (g *root) Fields() []pq.Field { return g.fields }

// add adds a column.
func (g *root) add(name string, node pq.Node) {
	g.Group[name] = node
	// A group makes the field. A field can find its values in Go structures; nothing here needs that.
	g.fields = append(g.fields, pq.Group{name: node}.Fields()[0])
}

func newRoot() *root { return &root{Group: pq.Group{}} }

func numbers() pq.Node { return pq.List(pq.Leaf(pq.FloatType)) }

// vectorNode returns the type of a column of vectors.
func vectorNode(sparse bool) pq.Node {
	if !sparse {
		return pq.Optional(numbers())
	}
	return pq.Optional(pq.Group{"i": pq.List(pq.Uint(32)), "v": numbers()})
}

func newWriter(w io.Writer, g *root) *writer {
	return writerOf(pq.NewGenericWriter[any](w, pq.NewSchema("items", g),
		pq.Compression(&pq.Snappy), pq.CreatedBy("fddhdb", "1", ""), pq.DataPageStatistics(false)))
}

func writerOf(w *pq.GenericWriter[any]) *writer {
	leaves := w.ColumnWriters()
	return &writer{w: w, leaves: leaves, row: make([][]pq.Value, len(leaves))}
}

// one adds the only value of the row to the next leaf, or a null of definition level def. size is its
// approximate size in bytes.
func (w *writer) one(v pq.Value, def, size int) {
	v.SetDefinitionLevel(def)
	w.add(1, size)[0] = v
}

// null adds a null to the next leaf.
func (w *writer) null(def int) { w.one(pq.NullValue(), def, 1) }

// optional adds the value of a leaf that may be null.
func (w *writer) optional(v pq.Value, size int) { w.one(v, 1, size+1) }

// addList adds a list of elements to the next leaf, each of about size bytes. def is the definition level of
// a list without elements.
func addList[T any](w *writer, elements []T, def, size int, value func(T) pq.Value) {
	if len(elements) == 0 {
		w.null(def)
		return
	}
	values := w.add(len(elements), size)
	for i, x := range elements {
		values[i] = value(x)
	}
	asList(values, def)
}

// add gives the next leaf n values, each of about size bytes. The caller fills them in.
func (w *writer) add(n, size int) []pq.Value {
	values := slices.Grow(w.row[w.leaf][:0], n)[:n]
	w.row[w.leaf] = values
	w.size += size * n
	w.leaf++
	return values
}

// asList sets the levels of values that form a list.
func asList(values []pq.Value, def int) {
	for i := range values {
		values[i].SetRepetitionLevel(1)
		values[i].SetDefinitionLevel(def + 1)
	}
	values[0].SetRepetitionLevel(0)
}

// dense is addList for a vector. It avoids a call for each number, which would take most of the time.
func (w *writer) dense(x []float32) {
	if len(x) == 0 {
		w.null(1)
		return
	}
	values := w.add(len(x), 5)
	for i, f := range x {
		values[i] = pq.FloatValue(f)
	}
	asList(values, 1)
}

func (w *writer) sparse(index []uint32, value []float32) {
	addList(w, index, 1, 5, func(i uint32) pq.Value { return pq.Int32Value(int32(i)) })
	w.dense(value)
}

// end writes the row.
func (w *writer) end() error {
	w.leaf = 0
	for i, leaf := range w.leaves {
		if _, err := leaf.WriteRowValues(w.row[i]); err != nil {
			return err
		}
	}
	if w.size <= groupBytes {
		return nil
	}
	w.size = 0
	return w.w.Flush()
}

// An ItemWriter writes items as a .parquet file, with a column for the keys, labels and so on. It holds a row
// group, about 64 MiB. It is not safe for concurrent use.
type ItemWriter struct {
	w     *writer
	shape table.Shape
}

// NewItemWriter starts a file of items of this shape. Names must be distinct. None may be key, labels,
// payload or code, which are columns of their own.
func NewItemWriter(w io.Writer, shape *table.Shape) (*ItemWriter, error) {
	g := newRoot()
	g.add("key", pq.String())
	g.add("labels", pq.List(pq.String()))
	g.add("payload", pq.Optional(pq.Leaf(pq.ByteArrayType)))
	g.add("code", pq.Optional(pq.Leaf(pq.ByteArrayType)))
	if shape.Code == 0 {
		delete(g.Group, "code")
		g.fields = g.fields[:3]
	}
	add := func(name string, node pq.Node) error {
		switch _, twice := g.Group[name]; {
		case name == "code" || twice:
			return fmt.Errorf("two columns would be named %q: a .parquet file has one for each name, and key, labels, payload and code are taken", name)
		case name == "":
			return errors.New("a column needs a name")
		}
		g.add(name, node)
		return nil
	}
	for _, v := range shape.Vectors {
		if err := add(v.Name, vectorNode(v.Sparse)); err != nil {
			return nil, err
		}
	}
	for _, f := range shape.Fields {
		node, ok := map[string]pq.Node{
			"string": pq.String(), "int": pq.Int(64),
			"float": pq.Leaf(pq.DoubleType), "bool": pq.Leaf(pq.BooleanType),
			"time": pq.Timestamp(pq.Microsecond),
		}[f.Type]
		if !ok {
			return nil, fmt.Errorf("the field %q has the unknown type %q", f.Name, f.Type)
		}
		if err := add(f.Name, pq.Optional(node)); err != nil {
			return nil, err
		}
	}
	return &ItemWriter{w: newWriter(w, g), shape: *shape}, nil
}

// Write adds an item, which belongs to the caller. After an error the file is as before.
func (iw *ItemWriter) Write(it *table.Item) error {
	w := iw.w
	w.leaf = 0 // the item before may have been refused
	w.one(pq.ValueOf(it.Key), 0, len(it.Key)+4)
	addList(w, it.Labels, 0, 16, func(l string) pq.Value { return pq.ValueOf(l) })
	w.bytes(it.Payload)
	if iw.shape.Code > 0 {
		w.bytes(it.Code)
	}
	for _, v := range iw.shape.Vectors {
		if err := iw.vector(v, it); err != nil {
			return fmt.Errorf("item %q: %w", it.Key, err)
		}
	}
	for _, f := range iw.shape.Fields {
		if err := w.field(f, it.Fields[f.Name]); err != nil {
			return fmt.Errorf("item %q: %w", it.Key, err)
		}
	}
	return w.end()
}

func (w *writer) bytes(b []byte) {
	if b == nil {
		w.null(0)
		return
	}
	w.optional(pq.ByteArrayValue(b), len(b)+4)
}

func (iw *ItemWriter) vector(v table.Vector, it *table.Item) error {
	x, dense := it.Vectors[v.Name]
	s, sparse := it.Sparse[v.Name]
	switch {
	case dense && !v.Sparse:
		iw.w.dense(x)
	case sparse && v.Sparse:
		iw.w.sparse(s.Index, s.Value)
	case dense || sparse:
		return fmt.Errorf("its vector %q is not of the form of the column", v.Name)
	default:
		iw.w.null(0)
		if v.Sparse {
			iw.w.null(0)
		}
	}
	return nil
}

// field adds the value of a field. A nil v adds a null.
func (w *writer) field(f table.Field, v any) error {
	var typ string
	var value pq.Value
	size := 8
	switch x := v.(type) {
	case nil:
		w.null(0)
		return nil
	case string:
		typ, value, size = "string", pq.ValueOf(x), len(x)+4
	case int64:
		typ, value = "int", pq.Int64Value(x)
	case float64:
		typ, value = "float", pq.DoubleValue(x)
	case bool:
		typ, value, size = "bool", pq.BooleanValue(x), 1
	case time.Time:
		if micros, err := instant.Of(x); err == nil {
			typ, value = "time", pq.Int64Value(micros)
		}
	}
	if typ != f.Type {
		return fmt.Errorf("the field %q is %v, which is not of type %s", f.Name, v, f.Type)
	}
	w.optional(value, size)
	return nil
}

// Close completes the file. It does not close the underlying writer.
func (iw *ItemWriter) Close() error { return iw.w.w.Close() }
