package parquet

import (
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// A form is the use that a column can have.
type form byte

const (
	other form = iota
	scalar
	lists
	sparse // a structure of the lists i and v
)

// A kind is the kind of the values of a leaf.
type kind byte

const (
	unknown kind = iota
	boolean
	signed
	unsigned
	float // of 2, 4 or 8 bytes
	text
	times    // see leaf.time
	binaries // of any length, or of a fixed one
)

func (k kind) String() string {
	return [...]string{"", "bools", "integers", "integers", "numbers", "strings", "times", "bytes"}[k]
}

// column is a field of the root of the schema, which users call a column.
type column struct {
	name   string
	form   form
	leaves []*leaf // its columns in the file
	what   string  // its type in words
}

// leaf is a column of the file: one that has values.
type leaf struct {
	path     []string
	ordinal  int // index among the leaves of the file
	physical format.Type
	kind     kind
	width    int         // bytes of a value; 0 if it has any length
	numbers  matrix.Type // of numbers and times
	unit     int64       // of times: microseconds; -1000 is a thousandth of one
	what     string      // its type in words

	maxDef, maxRep int // largest definition and repetition level
	repDef         int // definition level from which on the list has elements
}

// maxSchemaDepth bounds the nesting of columns: lists of lists of structures take seven levels.
const maxSchemaDepth = 32

// readSchema makes columns from a schema, which is a tree in preorder.
func readSchema(elements []format.SchemaElement) ([]*column, error) {
	if len(elements) == 0 {
		return nil, errors.New("has no schema: it is damaged")
	}
	b := schemaBuilder{rest: elements[1:]}
	var columns []*column
	seen := map[string]bool{}
	for range elements[0].NumChildren.V {
		c := &column{}
		if len(b.rest) > 0 {
			c.name = b.rest[0].Name
		}
		if seen[c.name] {
			return nil, fmt.Errorf("has two columns %s", matrix.Quote(c.name))
		}
		seen[c.name] = true
		if err := b.node(c, nil, 0, 0, 0); err != nil {
			return nil, err
		}
		c.classify()
		columns = append(columns, c)
	}
	if len(b.rest) > 0 {
		return nil, errSchema
	}
	return columns, nil
}

var errSchema = errors.New("has a schema that is no tree: it is damaged")

// schemaBuilder reads the nodes of a schema.
type schemaBuilder struct {
	rest   []format.SchemaElement // nodes that are still to come
	leaves int                    // leaves so far
}

// node reads the next node, and the nodes below it, into a column.
func (b *schemaBuilder) node(c *column, path []string, def, rep, repDef int) error {
	if len(b.rest) == 0 || len(path) > maxSchemaDepth {
		return errSchema
	}
	e := &b.rest[0]
	b.rest = b.rest[1:]
	path = append(path[:len(path):len(path)], e.Name)
	if e.RepetitionType.Valid {
		switch e.RepetitionType.V {
		case format.Optional:
			def++
		case format.Repeated:
			def++
			rep++
			repDef = def
		}
	}
	if n := e.NumChildren.V; n != 0 {
		if n < 0 || int(n) > len(b.rest) {
			return errSchema
		}
		for range n {
			if err := b.node(c, path, def, rep, repDef); err != nil {
				return err
			}
		}
		return nil
	}
	if !e.Type.Valid {
		return errSchema
	}
	l := &leaf{path: path, ordinal: b.leaves, physical: e.Type.V, maxDef: def, maxRep: rep, repDef: repDef}
	b.leaves++
	if err := l.setKind(e); err != nil {
		return fmt.Errorf("column %s: %w", matrix.Quote(path[0]), err)
	}
	l.numbers = matrix.Type{Kind: [...]byte{signed: 'i', unsigned: 'u', float: 'f', times: 'i',
		binaries: 0}[l.kind], Size: l.width}
	c.leaves = append(c.leaves, l)
	return nil
}

// setKind sets kind and width from the type of a leaf.
func (l *leaf) setKind(e *format.SchemaElement) error {
	l.what = fmt.Sprint(e.Type.V)
	converted := deprecated.ConvertedType(-1)
	if e.ConvertedType.Valid {
		converted = e.ConvertedType.V
	}
	if e.LogicalType.Value != nil {
		l.what = fmt.Sprint(e.LogicalType.Value)
	} else if converted >= 0 {
		l.what = fmt.Sprintf("%v of converted type %d", e.Type.V, converted)
	}
	is := unknown
	switch t := e.LogicalType.Value.(type) {
	case nil:
		is = ofConverted[converted]
	case *format.IntType:
		if is = signed; !t.IsSigned {
			is = unsigned
		}
	case *format.StringType, *format.EnumType, *format.JsonType:
		is = text
	case *format.Float16Type:
		is = float
	}
	switch e.Type.V {
	case format.Boolean:
		l.kind, l.width = boolean, 1
	case format.Int32, format.Int64:
		if l.width = 4; e.Type.V == format.Int64 {
			l.width = 8
		}
		if is == binaries { // of no other type
			is = signed
		}
		if is == signed || is == unsigned {
			l.kind = is
		}
		l.setUnit(e, converted)
	case format.Int96: // the old type of timestamps; no other values have it
		l.kind, l.width = times, 12
	case format.Float:
		l.kind, l.width = float, 4
	case format.Double:
		l.kind, l.width = float, 8
	case format.ByteArray:
		if is == text || is == binaries {
			l.kind = is
		}
	case format.FixedLenByteArray:
		if e.TypeLength.V < 1 || e.TypeLength.V > maxFixed {
			return fmt.Errorf("has values of %d bytes, 1 to %d are supported", e.TypeLength.V, maxFixed)
		}
		if l.width = int(e.TypeLength.V); is == binaries || is == float && l.width == 2 {
			l.kind = is
		}
	default:
		return fmt.Errorf("is of an unknown type, %d", e.Type.V)
	}
	return nil
}

// ofConverted are the kinds of types that older files have in place of logical ones; -1 stands for none.
var ofConverted = map[deprecated.ConvertedType]kind{
	-1: binaries, deprecated.UTF8: text, deprecated.Enum: text, deprecated.Json: text,
	deprecated.Uint8: unsigned, deprecated.Uint16: unsigned, deprecated.Uint32: unsigned,
	deprecated.Uint64: unsigned,
	deprecated.Int8:   signed, deprecated.Int16: signed, deprecated.Int32: signed, deprecated.Int64: signed,
}

// maxFixed bounds the length of values of fixed length.
const maxFixed = 1 << 20

// classify sets the form of the column.
func (c *column) classify() {
	switch first := c.leaves; {
	case len(first) == 1 && first[0].maxRep == 0 && len(first[0].path) == 1:
		c.form, c.what = scalar, first[0].spell()
	case len(first) == 1 && first[0].maxRep == 1:
		c.form, c.what = lists, "lists of "+first[0].spell()
	case len(first) == 2 && first[0].member("i") && first[1].member("v"):
		c.form, c.what = sparse, "structures of two lists"
	case len(first) == 1 && first[0].maxRep > 1:
		c.what = "lists of lists"
	default:
		c.what = "structures"
	}
}

// spell returns the type of the values in words.
func (l *leaf) spell() string {
	if l.kind == unknown {
		return "values of type " + l.what
	}
	return l.kind.String()
}

// member reports whether the leaf is a list that is a member of the column.
func (l *leaf) member(name string) bool {
	return len(l.path) > 2 && l.path[1] == name && l.maxRep == 1 && (l.repDef > 0)
}

// vector reports whether the column has dense vectors.
func (c *column) vector() bool {
	return c.form == lists && c.leaves[0].number()
}

// sparseVector reports whether the column has sparse vectors.
func (c *column) sparseVector() bool {
	return c.form == sparse && (c.leaves[0].kind == signed || c.leaves[0].kind == unsigned) &&
		c.leaves[1].number()
}

func (l *leaf) number() bool { return l.kind == signed || l.kind == unsigned || l.kind == float }

// int64 returns a number of an integer kind. An unsigned one of 8 bytes is returned by its bits.
func (l *leaf) int64(b []byte) int64 {
	if l.kind == unsigned {
		return int64(l.numbers.Word(b))
	}
	return l.numbers.Signed(b)
}
