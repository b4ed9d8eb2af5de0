package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/fddhdb/fddhdb/internal/instant"
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

// runs decodes numbers of width bits, at most 32, until dst is full: runs of equal numbers and groups of
// packed ones, which Parquet calls RLE. Levels, indices into the dictionary and bools have this form.
func runs[T uint8 | uint32](dst []T, b []byte, width int) error {
	for len(dst) > 0 {
		head, n := binary.Uvarint(b)
		count := head >> 1
		if n <= 0 || count == 0 || count > 1<<31 {
			return errValues
		}
		b = b[n:]
		var part []T
		if head&1 == 0 {
			size := (width + 7) / 8
			if len(b) < size {
				return errValues
			}
			value := unpack(b, 0, 8*size)
			if value>>width != 0 {
				return errPage
			}
			part = dst[:min(int(count), len(dst))]
			part[0] = T(value)
			for n := 1; n < len(part); n *= 2 {
				copy(part[n:], part[:n])
			}
			b = b[size:]
		} else {
			// Groups of eight. The last one may be cut off if its numbers are not needed.
			size, n := min(int(count)*width, len(b)), int(count)*8
			if width > 0 {
				n = min(n, size*8/width)
			}
			if n == 0 {
				return errValues
			}
			part = dst[:min(n, len(dst))]
			unpackAll(part, b, width)
			b = b[size:]
		}
		dst = dst[len(part):]
	}
	return nil
}

// unpackAll unpacks numbers of width bits each from the start of b. If b is too short the last numbers are 0.
func unpackAll[T uint8 | uint32](dst []T, b []byte, width int) {
	i := 0
	// Eight numbers at a time take width bytes. Most levels are decoded here.
	for at := 0; width <= 8 && i+8 <= len(dst) && at+8 <= len(b); at += width {
		x := binary.LittleEndian.Uint64(b[at:])
		for k := range dst[i : i+8] {
			dst[i+k] = T(x & (1<<width - 1))
			x >>= width
		}
		i += 8
	}
	for ; i < len(dst); i++ {
		dst[i] = T(unpack(b, i*width, width))
	}
}

// unpack returns the number of width bits, at most 32, that starts at bit first of b.
func unpack(b []byte, first, width int) uint32 {
	at := first >> 3
	if at+8 <= len(b) {
		return uint32(binary.LittleEndian.Uint64(b[at:])>>(first&7)) & uint32(1<<width-1)
	}
	var tail [8]byte
	copy(tail[:], b[min(at, len(b)):])
	return uint32(binary.LittleEndian.Uint64(tail[:])>>(first&7)) & uint32(1<<width-1)
}

// levels decodes levels up to most into dst, and returns how many of them equal most.
func levels(dst []byte, b []byte, most int) (int, error) {
	width := bits.Len(uint(most))
	if err := runs(dst, b, width); err != nil {
		return 0, err
	}
	for above := most + 1; above < 1<<width; above++ {
		if bytes.IndexByte(dst, byte(above)) >= 0 {
			return 0, errPage
		}
	}
	return bytes.Count(dst, []byte{byte(most)}), nil
}

// deltas decodes DELTA_BINARY_PACKED: n whole numbers, each written as its difference to the one before,
// packed in blocks. rest is the remainder of b.
func deltas(b []byte, n int) (values []int64, rest []byte, err error) {
	number := func() uint64 {
		x, n := binary.Uvarint(b)
		if n <= 0 {
			err = errValues
			return 0
		}
		b = b[n:]
		return x
	}
	zigzag := func() int64 {
		x := number()
		return int64(x>>1) ^ -int64(x&1)
	}
	block, minis, total, last := number(), number(), number(), zigzag()
	switch {
	case err != nil:
		return nil, nil, err
	case block == 0 || block%128 != 0 || block > 1<<20 || minis == 0 || minis > block || block%minis != 0 ||
		block/minis%32 != 0:
		return nil, nil, errPage
	case total > uint64(n):
		return nil, nil, fmt.Errorf("%w: it has %d values, and claims %d", errPage, n, total)
	case total < uint64(n):
		return nil, nil, errValues
	case n == 0:
		return nil, b, nil
	}
	values = append(make([]int64, 0, n), last)
	perMini := int(block / minis)
	for len(values) < n {
		least := zigzag()
		if err != nil || len(b) < int(minis) {
			return nil, nil, errValues
		}
		widths := b[:minis]
		b = b[minis:]
		for _, width := range widths {
			if len(values) == n {
				break
			}
			size := perMini * int(width) / 8
			if width > 64 || size > len(b) {
				return nil, nil, errValues
			}
			for i := range min(perMini, n-len(values)) {
				last += least + int64(unpack64(b[:size], i*int(width), int(width)))
				values = append(values, last)
			}
			b = b[size:]
		}
	}
	return values, b, nil
}

// unpack64 is unpack for numbers of up to 64 bits.
func unpack64(b []byte, first, width int) uint64 {
	if width <= 32 {
		return uint64(unpack(b, first, width))
	}
	return uint64(unpack(b, first, 32)) | uint64(unpack(b, first+32, width-32))<<32
}

// Microseconds of the units of time.
const (
	micros = int64(1)
	millis = 1000 * micros
	day    = 86_400_000 * millis

	nanos = int64(-1000) // a thousand of them are a microsecond
)

// setUnit makes a leaf of integers one of times if its type is that of dates or timestamps. Times of a place
// without its offset are taken for UTC (isAdjustedToUTC is not looked at).
func (l *leaf) setUnit(e *format.SchemaElement, converted deprecated.ConvertedType) {
	unit := int64(0)
	switch t := e.LogicalType.Value.(type) {
	case *format.DateType:
		unit = day
	case *format.TimestampType:
		switch t.Unit.Value.(type) {
		case *format.MilliSeconds:
			unit = millis
		case *format.MicroSeconds:
			unit = micros
		case *format.NanoSeconds:
			unit = nanos
		}
	case nil:
		unit = map[deprecated.ConvertedType]int64{
			deprecated.Date: day, deprecated.TimestampMillis: millis, deprecated.TimestampMicros: micros,
		}[converted]
	}
	if unit != 0 && (unit == day) == (l.width == 4) {
		l.kind, l.unit = times, unit
	}
}

// time returns a value of kind times in microseconds. What is finer is cut off, towards the past.
func (l *leaf) time(b []byte) (int64, error) {
	switch {
	case l.width == 12: // nanoseconds of the day, and the day of the Julian calendar
		const epoch = 2_440_588 // 1970-01-01
		at, err := instant.Scale(int64(binary.LittleEndian.Uint32(b[8:]))-epoch, day)
		if at += floor(int64(binary.LittleEndian.Uint64(b))); err == nil && !instant.Has(at) {
			err = instant.ErrFar
		}
		return at, err
	case l.unit == nanos:
		return floor(l.int64(b)), nil
	}
	return instant.Scale(l.int64(b), l.unit)
}

// floor returns the microseconds of nanoseconds.
func floor(nanos int64) int64 {
	at := nanos / 1000
	if nanos%1000 < 0 {
		at--
	}
	return at
}
