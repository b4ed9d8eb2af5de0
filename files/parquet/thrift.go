package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/encoding/thrift"
)

// The footer of a file and the headers of its pages are in the compact protocol of Thrift. A list there
// states its length before its elements, and decoders allocate memory for all of them: five bytes can ask for
// hundreds of gigabytes. So they are walked through first, without allocating.

var (
	errThrift = errors.New("the metadata is damaged")
	errShort  = errors.New("the metadata ends inside a value")
)

// maxThriftDepth bounds the nesting of structures. Those of Parquet nest ten deep.
const maxThriftDepth = 40

// decode decodes the structure at the start of b into v, and returns its length.
func decode(b []byte, v any) (n int, err error) {
	w := walker{b: b}
	if err := w.structure(0); err != nil {
		return 0, err
	}
	// An element of a list of structures takes about 500 bytes in memory. In a file, with all of its
	// contents, it hardly takes less than eight.
	if w.structures > 1000+w.at/8 {
		return 0, fmt.Errorf("%w: %d structures in %d bytes", errThrift, w.structures, w.at)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errThrift, p)
		}
	}()
	var compact thrift.CompactProtocol
	if err := thrift.NewDecoder(compact.NewReaderFromBytes(b[:w.at])).Decode(v); err != nil {
		return 0, fmt.Errorf("%w: %w", errThrift, err)
	}
	return w.at, nil
}

// walker finds the end of a structure.
type walker struct {
	b          []byte
	at         int
	structures int // in lists
}

func (w *walker) byte() (byte, error) {
	if w.at >= len(w.b) {
		return 0, errShort
	}
	w.at++
	return w.b[w.at-1], nil
}

func (w *walker) varint() (uint64, error) {
	x, n := binary.Uvarint(w.b[w.at:])
	switch {
	case n == 0:
		return 0, errShort
	case n < 0:
		return 0, errThrift
	}
	w.at += n
	return x, nil
}

func (w *walker) skip(n uint64) error {
	if n > uint64(len(w.b)-w.at) {
		return errShort
	}
	w.at += int(n)
	return nil
}

// structure walks through fields up to the one that ends them.
func (w *walker) structure(depth int) error {
	if depth > maxThriftDepth {
		return errThrift
	}
	for {
		head, err := w.byte()
		if err != nil || head == 0 {
			return err
		}
		if head>>4 == 0 {
			if _, err := w.varint(); err != nil { // the id of the field
				return err
			}
		}
		if kind := head & 0xf; kind == 1 || kind == 2 {
			continue // the type of a bool holds its value
		} else if err := w.value(kind, depth+1); err != nil {
			return err
		}
	}
}

func (w *walker) value(kind byte, depth int) error {
	switch kind {
	case 1, 2, 3: // bools in lists, and bytes
		return w.skip(1)
	case 4, 5, 6:
		_, err := w.varint()
		return err
	case 7:
		return w.skip(8)
	case 8:
		n, err := w.varint()
		if err != nil {
			return err
		}
		return w.skip(n)
	case 9, 10:
		return w.list(depth)
	case 11:
		return w.pairs(depth)
	case 12:
		return w.structure(depth)
	}
	return errThrift
}

func (w *walker) list(depth int) error {
	head, err := w.byte()
	if err != nil {
		return err
	}
	n := uint64(head >> 4)
	if n == 15 {
		if n, err = w.varint(); err != nil {
			return err
		}
	}
	// An element takes at least a byte.
	if depth > maxThriftDepth || n > uint64(len(w.b)-w.at) {
		return errThrift
	}
	kind := head & 0xf
	if kind >= 9 {
		w.structures += int(n)
	}
	for range n {
		if err := w.value(kind, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) pairs(depth int) error {
	n, err := w.varint()
	if err != nil || n == 0 {
		return err
	}
	kinds, err := w.byte()
	if err != nil {
		return err
	}
	if depth > maxThriftDepth || n > uint64(len(w.b)-w.at) {
		return errThrift
	}
	w.structures += int(n)
	for range n {
		if err := w.value(kinds>>4, depth+1); err != nil {
			return err
		}
		if err := w.value(kinds&0xf, depth+1); err != nil {
			return err
		}
	}
	return nil
}
