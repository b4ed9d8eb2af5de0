package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/format"
)

var (
	errPage   = errors.New("the page is damaged")
	errValues = fmt.Errorf("%w: it ends before its values do", errPage)
)

// plainDictionary is the name by which older writers mean Plain in the header of a dictionary, and
// RLEDictionary in the header of a data page.
const plainDictionary format.Encoding = 2

// values are the values of a page, a row or a dictionary, without nulls.
type values struct {
	width int      // bytes of each value; 0 if they have any length
	raw   []byte   // values of fixed width, one after the other
	any   [][]byte // values of any length
}

func (v *values) len() int {
	if v.width > 0 {
		return len(v.raw) / v.width
	}
	return len(v.any)
}

// A decoder decodes the values of pages of one leaf. Its results alias the page or its own memory, and are
// valid until the next page.
type decoder struct {
	leaf   *leaf
	memory *budget // of the file
	dict   *values // of the column chunk; nil if it has none

	// Memory that the next page reuses.
	raw    []byte   // values of fixed width
	any    [][]byte // values of any length
	joined []byte   // bytes of values that are written as differences
	index  []uint32 // numbers of entries of the dictionary
}

// decode decodes n values of a page. Each encoding checks that b holds as many.
func (d *decoder) decode(b []byte, n int, encoding format.Encoding) (values, error) {
	switch encoding {
	case format.Plain:
		return d.plain(b, n)
	case plainDictionary, format.RLEDictionary:
		return d.lookUp(b, n)
	case format.ByteStreamSplit:
		return d.split(b, n)
	case format.RLE:
		return d.bools(b, n)
	case format.DeltaBinaryPacked:
		return d.deltas(b, n)
	case format.DeltaLengthByteArray, format.DeltaByteArray:
		return d.strings(b, n, encoding == format.DeltaByteArray)
	}
	return values{}, fmt.Errorf("is in encoding %v, which is not supported", encoding)
}

// fixed gives d.raw the length of n values of the leaf.
func (d *decoder) fixed(n int) error { return grow(d.memory, &d.raw, n*d.leaf.width) }

// plain decodes values in their plain form.
func (d *decoder) plain(b []byte, n int) (values, error) {
	width := d.leaf.width
	switch {
	case d.leaf.kind == boolean:
		if (n+7)/8 > len(b) {
			return values{}, errValues
		}
		err := d.fixed(n)
		if err == nil {
			unpackAll(d.raw, b, 1)
		}
		return values{width: 1, raw: d.raw}, err
	case width > 0:
		if n > len(b)/width {
			return values{}, errValues
		}
		return values{width: width, raw: b[:n*width]}, nil
	case n > len(b)/4:
		return values{}, errValues
	}
	if err := grow(d.memory, &d.any, n); err != nil {
		return values{}, err
	}
	for i := range d.any {
		if len(b) < 4 {
			return values{}, errValues
		}
		size := binary.LittleEndian.Uint32(b)
		if uint64(size) > uint64(len(b)-4) {
			return values{}, errValues
		}
		d.any[i], b = b[4:4+size], b[4+size:]
	}
	return values{any: d.any}, nil
}

// lookUp decodes indices into the dictionary, and copies the entries.
func (d *decoder) lookUp(b []byte, n int) (values, error) {
	width := d.leaf.width
	switch {
	case d.dict == nil:
		return values{}, fmt.Errorf("%w: it needs a dictionary, which is missing", errPage)
	case n == 0:
		return values{width: width}, nil
	case len(b) == 0 || b[0] > 32:
		return values{}, errValues
	}
	if err := grow(d.memory, &d.index, n); err != nil {
		return values{}, err
	}
	if err := runs(d.index, b[1:], int(b[0])); err != nil {
		return values{}, err
	}
	entries := uint32(d.dict.len())
	for _, i := range d.index {
		if i >= entries {
			return values{}, fmt.Errorf("%w: it has entry %d of a dictionary of %d", errPage, i, entries)
		}
	}
	if width == 0 {
		if err := grow(d.memory, &d.any, n); err != nil {
			return values{}, err
		}
		for i, e := range d.index {
			d.any[i] = d.dict.any[e]
		}
		return values{any: d.any}, nil
	}
	if err := d.fixed(n); err != nil {
		return values{}, err
	}
	if width == 4 { // numbers of most vectors
		for i, e := range d.index {
			*(*[4]byte)(d.raw[4*i:]) = [4]byte(d.dict.raw[4*e:])
		}
	} else {
		for i, e := range d.index {
			copy(d.raw[i*width:(i+1)*width], d.dict.raw[int(e)*width:])
		}
	}
	return values{width: width, raw: d.raw}, nil
}

// split decodes BYTE_STREAM_SPLIT: the first bytes of all values, then all second bytes, and so on.
func (d *decoder) split(b []byte, n int) (values, error) {
	width := d.leaf.width
	if width == 0 || d.leaf.kind == boolean || n > len(b)/width {
		return values{}, errValues
	}
	if err := d.fixed(n); err != nil {
		return values{}, err
	}
	for k := range width {
		for i, x := range b[k*n : (k+1)*n] {
			d.raw[i*width+k] = x
		}
	}
	return values{width: width, raw: d.raw}, nil
}

// bools decodes runs of bools, preceded by their length.
func (d *decoder) bools(b []byte, n int) (values, error) {
	if d.leaf.kind != boolean || len(b) < 4 {
		return values{}, errPage
	}
	if err := d.fixed(n); err != nil {
		return values{}, err
	}
	return values{width: 1, raw: d.raw}, runs(d.raw, b[4:], 1)
}

// deltas decodes whole numbers written as differences.
func (d *decoder) deltas(b []byte, n int) (values, error) {
	width := d.leaf.width
	if d.leaf.physical != format.Int32 && d.leaf.physical != format.Int64 {
		return values{}, errPage
	}
	// The decoded numbers take 8 bytes each. That memory is free again once they are copied.
	if err := d.fixed(n); err != nil {
		return values{}, err
	}
	if err := d.memory.take(8 * n); err != nil {
		return values{}, err
	}
	defer d.memory.give(8 * n)
	numbers, _, err := deltas(b, n)
	if err != nil {
		return values{}, err
	}
	for i, x := range numbers {
		if width == 4 {
			binary.LittleEndian.PutUint32(d.raw[4*i:], uint32(x))
		} else {
			binary.LittleEndian.PutUint64(d.raw[8*i:], uint64(x))
		}
	}
	return values{width: width, raw: d.raw}, nil
}

// strings decodes values of any length: first all lengths, then all bytes. With prefixes, the lengths of the
// prefixes that values share with the value before come first of all.
func (d *decoder) strings(b []byte, n int, prefixes bool) (values, error) {
	if d.leaf.physical != format.ByteArray && d.leaf.physical != format.FixedLenByteArray {
		return values{}, errPage
	}
	if err := d.memory.take(16 * n); err != nil {
		return values{}, err
	}
	defer d.memory.give(16 * n)
	var shared []int64
	var err error
	if prefixes {
		if shared, b, err = deltas(b, n); err != nil {
			return values{}, err
		}
	}
	sizes, b, err := deltas(b, n)
	if err != nil {
		return values{}, err
	}
	left, last, total := int64(len(b)), int64(0), int64(0)
	for i, size := range sizes {
		switch {
		case size < 0 || size > maxPage:
			return values{}, errPage
		case size > left:
			return values{}, errValues
		}
		left -= size
		if prefixes {
			if shared[i] < 0 || shared[i] > last {
				return values{}, errPage
			}
			last = shared[i] + size
			// All values together must fit into a page.
			if total += last; total > maxPage {
				return values{}, errPage
			}
		}
	}
	if err := grow(d.memory, &d.joined, int(total)); err != nil {
		return values{}, err
	}
	if err := grow(d.memory, &d.any, n); err != nil {
		return values{}, err
	}
	joined := d.joined[:0]
	for i, size := range sizes {
		v := b[:size]
		b = b[size:]
		if prefixes {
			start := len(joined)
			if i > 0 {
				joined = append(joined, d.any[i-1][:shared[i]]...)
			}
			joined = append(joined, v...)
			v = joined[start:len(joined):len(joined)]
		}
		d.any[i] = v
	}
	if d.leaf.width == 0 {
		return values{any: d.any}, nil
	}
	if err := d.fixed(n); err != nil {
		return values{}, err
	}
	for i, v := range d.any {
		if len(v) != d.leaf.width {
			return values{}, errPage
		}
		copy(d.raw[i*d.leaf.width:], v)
	}
	return values{width: d.leaf.width, raw: d.raw}, nil
}
