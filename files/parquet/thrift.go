package parquet

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
)

var (
	errThrift = errors.New("the metadata is damaged")
	errShort  = errors.New("the metadata ends inside a value")
)

// maxThriftDepth bounds the nesting of structures. Those of Parquet nest ten deep.
const maxThriftDepth = 40

// decode decodes the structure at the start of b into v, and returns its length. The footer of a file and the
// headers of its pages are in the compact protocol of Thrift.
func decode(b []byte, v any) (n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errThrift, p)
		}
	}()
	read := new(thrift.CompactProtocol).NewReaderFromBytes(b)
	r := &guard{BytesReader: read, size: len(b), open: []int32{1}}
	err = thrift.NewDecoder(r).Decode(v)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, errShort
	} else if err != nil {
		return 0, fmt.Errorf("%w: %w", errThrift, err)
	}
	return r.BytesRead(), nil
}

// guard refuses what no file has before it takes memory. A list states its length before its elements, and
// the decoder allocates memory for all of them: five bytes can ask for hundreds of gigabytes. Structures that
// the decoder skips can nest as deep as there are bytes.
type guard struct {
	thrift.BytesReader
	size       int
	structures int     // in lists
	open       []int32 // structures whose end is to come, by their depth
}

// Discard is a method of the reader that its interface lacks.
func (g *guard) Discard(n int) (int, error) {
	return g.BytesReader.(interface{ Discard(int) (int, error) }).Discard(n)
}

func (g *guard) ReadField() (thrift.Field, error) {
	f, err := g.BytesReader.ReadField()
	if err != nil {
		return f, err
	}
	switch f.Type {
	case thrift.STRUCT:
		return f, g.nest(1)
	case thrift.STOP:
		last := len(g.open) - 1
		if g.open[last]--; g.open[last] == 0 {
			g.open = g.open[:last]
		}
	}
	return f, nil
}

// nest begins n structures, one after another.
func (g *guard) nest(n int32) error {
	if len(g.open) > maxThriftDepth {
		return errors.New("it nests too deep")
	}
	g.open = append(g.open, n)
	return nil
}

func (g *guard) ReadList() (thrift.List, error) {
	l, err := g.BytesReader.ReadList()
	if err != nil || l.Size == 0 {
		return l, err
	}
	// An element takes at least a byte.
	if int(l.Size) > g.size-g.BytesRead() {
		return l, fmt.Errorf("a list of %d elements", l.Size)
	}
	switch l.Type {
	case thrift.LIST, thrift.SET, thrift.MAP:
		return l, fmt.Errorf("a list of %v", l.Type)
	case thrift.STRUCT:
		// An element takes about 500 bytes in memory. In a file, with all of its contents, it hardly takes
		// less than eight.
		if g.structures += int(l.Size); g.structures > 1000+g.size/8 {
			return l, fmt.Errorf("%d structures in %d bytes", g.structures, g.size)
		}
		return l, g.nest(l.Size)
	}
	return l, nil
}

func (g *guard) ReadSet() (thrift.Set, error) {
	l, err := g.ReadList()
	return thrift.Set(l), err
}

// ReadMap refuses maps, which Parquet has none of.
func (g *guard) ReadMap() (thrift.Map, error) { return thrift.Map{}, errors.New("a map") }
