package parquetfile

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

// plainDictionary is what older writers call Plain, of a dictionary, and RLEDictionary, of
// a page.
const plainDictionary format.Encoding = 2

// values are those of a page or of a dictionary that are there: raw ones of one width, or
// any.
type values struct {
	width int
	raw   []byte
	any   [][]byte
}

func (v *values) len() int {
	if v.width > 0 {
		return len(v.raw) / v.width
	}
	return len(v.any)
}

// A decoder decodes the values of pages of one leaf, into memory that it uses again.
type decoder struct {
	leaf   *leaf
	dict   *values
	raw    []byte
	any    [][]byte
	joined []byte
	index  []uint32
	memory *budget
}

// decode decodes n values.
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

// fixed returns memory for n values of the width of the leaf.
func (d *decoder) fixed(n int) ([]byte, error) {
	size := n * d.leaf.width
	if size > cap(d.raw) {
		if err := d.memory.take(size - cap(d.raw)); err != nil {
			return nil, err
		}
		d.raw = make([]byte, size)
	}
	return d.raw[:size], nil
}

// slices returns memory for n values of any length.
func (d *decoder) slices(n int) ([][]byte, error) {
	if n > cap(d.any) {
		if err := d.memory.take(24 * (n - cap(d.any))); err != nil {
			return nil, err
		}
		d.any = make([][]byte, n)
	}
	return d.any[:n], nil
}

func (d *decoder) plain(b []byte, n int) (values, error) {
	width := d.leaf.width
	if d.leaf.kind == boolean {
		if (n+7)/8 > len(b) {
			return values{}, errValues
		}
		raw, err := d.fixed(n)
		for i := range raw {
			raw[i] = b[i/8] >> (i % 8) & 1
		}
		return values{width: 1, raw: raw}, err
	}
	if width > 0 {
		if n > len(b)/width {
			return values{}, errValues
		}
		return values{width: width, raw: b[:n*width]}, nil
	}
	if n > len(b)/4 {
		return values{}, errValues
	}
	any, err := d.slices(n)
	if err != nil {
		return values{}, err
	}
	for i := range any {
		if len(b) < 4 {
			return values{}, errValues
		}
		size := binary.LittleEndian.Uint32(b)
		if uint64(size) > uint64(len(b)-4) {
			return values{}, errValues
		}
		any[i], b = b[4:4+size], b[4+size:]
	}
	return values{any: any}, nil
}

// lookUp decodes numbers of entries of the dictionary.
func (d *decoder) lookUp(b []byte, n int) (values, error) {
	switch {
	case d.dict == nil:
		return values{}, fmt.Errorf("%w: it needs a dictionary, which is missing", errPage)
	case n == 0:
		return values{width: d.leaf.width}, nil
	case len(b) == 0 || b[0] > 32:
		return values{}, errValues
	}
	if n > cap(d.index) {
		if err := d.memory.take(4 * (n - cap(d.index))); err != nil {
			return values{}, err
		}
		d.index = make([]uint32, n)
	}
	index := d.index[:n]
	if err := fill(&hybrid{b: b[1:], width: int(b[0])}, index); err != nil {
		return values{}, err
	}
	entries := uint32(d.dict.len())
	for _, i := range index {
		if i >= entries {
			return values{}, fmt.Errorf("%w: it has entry %d of a dictionary of %d", errPage, i, entries)
		}
	}
	switch width := d.leaf.width; width {
	case 0:
		any, err := d.slices(n)
		if err != nil {
			return values{}, err
		}
		for i, e := range index {
			any[i] = d.dict.any[e]
		}
		return values{any: any}, nil
	case 4:
		raw, err := d.fixed(n)
		if err != nil {
			return values{}, err
		}
		for i, e := range index {
			*(*[4]byte)(raw[4*i:]) = [4]byte(d.dict.raw[4*e:])
		}
		return values{width: 4, raw: raw}, nil
	default:
		raw, err := d.fixed(n)
		if err != nil {
			return values{}, err
		}
		for i, e := range index {
			copy(raw[i*width:(i+1)*width], d.dict.raw[int(e)*width:])
		}
		return values{width: width, raw: raw}, nil
	}
}

// split decodes BYTE_STREAM_SPLIT: the first bytes of all values, then the second, ...
func (d *decoder) split(b []byte, n int) (values, error) {
	width := d.leaf.width
	if width == 0 || d.leaf.kind == boolean || n > len(b)/width {
		return values{}, errValues
	}
	raw, err := d.fixed(n)
	if err != nil {
		return values{}, err
	}
	for k := range width {
		stream := b[k*n : (k+1)*n]
		for i, x := range stream {
			raw[i*width+k] = x
		}
	}
	return values{width: width, raw: raw}, nil
}

// bools decodes runs of them, after their length.
func (d *decoder) bools(b []byte, n int) (values, error) {
	if d.leaf.kind != boolean || len(b) < 4 {
		return values{}, errPage
	}
	raw, err := d.fixed(n)
	if err != nil {
		return values{}, err
	}
	return values{width: 1, raw: raw}, fill(&hybrid{b: b[4:], width: 1}, raw)
}

func (d *decoder) deltas(b []byte, n int) (values, error) {
	if d.leaf.physical != format.Int32 && d.leaf.physical != format.Int64 {
		return values{}, errPage
	}
	// The numbers come with 8 bytes each, and go when they have been copied.
	raw, err := d.fixed(n)
	if err != nil {
		return values{}, err
	}
	if err := d.memory.take(8 * n); err != nil {
		return values{}, err
	}
	defer d.memory.give(8 * n)
	numbers, _, err := deltas(b, n)
	switch {
	case err != nil:
		return values{}, err
	case len(numbers) < n:
		return values{}, errValues
	}
	for i, x := range numbers {
		if d.leaf.width == 4 {
			binary.LittleEndian.PutUint32(raw[4*i:], uint32(x))
		} else {
			binary.LittleEndian.PutUint64(raw[8*i:], uint64(x))
		}
	}
	return values{width: d.leaf.width, raw: raw}, nil
}

// strings decodes values after all their lengths; with prefixes, each starts like the one
// before it.
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
	switch {
	case err != nil:
		return values{}, err
	case len(sizes) < n || prefixes && len(shared) < n:
		return values{}, errValues
	}
	total := int64(0)
	for i, size := range sizes {
		if prefixes {
			if shared[i] < 0 || shared[i] > maxPage || size > maxPage {
				return values{}, errPage
			}
			size += shared[i]
		}
		// All in all, the values are those of one page.
		if total += size; size < 0 || total > maxPage {
			return values{}, errPage
		}
	}
	if prefixes && int(total) > cap(d.joined) {
		if err := d.memory.take(int(total) - cap(d.joined)); err != nil {
			return values{}, err
		}
		d.joined = make([]byte, 0, total)
	}
	joined := d.joined[:0]
	any, err := d.slices(n)
	if err != nil {
		return values{}, err
	}
	for i, size := range sizes {
		if size < 0 || size > int64(len(b)) {
			return values{}, errValues
		}
		v := b[:size]
		b = b[size:]
		if prefixes {
			if shared[i] > 0 && (i == 0 || shared[i] > int64(len(any[i-1]))) {
				return values{}, errPage
			}
			start := len(joined)
			if shared[i] > 0 {
				joined = append(joined, any[i-1][:shared[i]]...)
			}
			joined = append(joined, v...)
			v = joined[start:len(joined):len(joined)]
		}
		any[i] = v
	}
	if d.leaf.width == 0 {
		return values{any: any}, nil
	}
	raw, err := d.fixed(n)
	if err != nil {
		return values{}, err
	}
	for i, v := range any {
		if len(v) != d.leaf.width {
			return values{}, errPage
		}
		copy(raw[i*d.leaf.width:], v)
	}
	return values{width: d.leaf.width, raw: raw}, nil
}
