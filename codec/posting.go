package codec

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// A posting is a set of code numbers, written as edits that are merged. An edit names
// the numbers that it adds and those that it deletes, no number twice, and has the form
// of the posting that edits add up to. Edits follow the algebra of a [Layer]. Their
// form differs: most postings hold a few of many million numbers, for which a bitmap
// needs 10 bytes a number and deltas need 3.
//
//	byte     forms: low half of the additions, high half of the deletions;
//	         0 there are none, 1 deltas, 2 bitmap, others are reserved
//	uvarint  length of the additions in bytes, only where there are both
//	         additions
//	         deletions, to the end
//
// Deltas are uvarints of the shortest form: the first number, then for each further
// number its difference to the one before, less one. A bitmap is a roaring bitmap in
// the portable format, without run containers. So the numbers never take more than 32
// times the memory of the bytes that spell them. The writer takes the shorter form,
// deltas if they are equal.
//
// An array container never makes the bitmap shorter. With c numbers it takes 8 + 2c
// bytes. Deltas take at most 2c + 6: at most 3 differences, of 65,535 in all, need 3
// bytes, and the step into the container needs at most 5. So only numbers that share a
// container with 4,096 others call for a comparison.
const (
	postingNone   = 0
	postingDeltas = 1
	postingBitmap = 2
)

const (
	roaringCookie   = 12346 // of a bitmap without run containers
	arrayContainer  = 4096  // largest number of numbers in an array container
	bitmapContainer = 8192  // bytes of a bitmap container
)

// AppendPosting appends the edit of a posting that adds and deletes these numbers. Both
// slices ascend strictly and have no number in common. It costs a few nanoseconds a
// number. For fewer than 4,096 numbers it allocates nothing besides dst.
func AppendPosting(dst []byte, added, deleted []uint32) []byte {
	return appendPosting(dst, listNumbers(added), listNumbers(deleted))
}

// AppendPostingCodes appends the numbers that a posting adds to dst, ascending. A
// posting read from the database is merged and deletes nothing, so these are all of its
// numbers. If dst has room, deltas (every posting of up to 4,096 numbers) are read in a
// few nanoseconds a number and without allocation. The error wraps ErrCorrupt; dst is
// then returned unchanged.
func AppendPostingCodes(dst []uint32, value []byte) ([]uint32, error) {
	added, _, err := splitPosting(value)
	if err != nil {
		return dst, err
	}
	return added.appendTo(dst)
}

// DecodePosting returns copies of the numbers that an edit of a posting adds and
// deletes, ascending. The error wraps ErrCorrupt.
func DecodePosting(value []byte) (added, deleted []uint32, err error) {
	a, d, err := splitPosting(value)
	if err != nil {
		return nil, nil, err
	}
	if added, err = a.appendTo(nil); err != nil {
		return nil, nil, err
	}
	if deleted, err = d.appendTo(nil); err != nil {
		return nil, nil, err
	}
	for i, j := 0, 0; i < len(added) && j < len(deleted); {
		switch {
		case added[i] < deleted[j]:
			i++
		case added[i] > deleted[j]:
			j++
		default:
			return nil, nil, errBothWays(added[i])
		}
	}
	return added, deleted, nil
}

func errBothWays(x uint32) error {
	return fmt.Errorf("%w: posting: adds and deletes %d", ErrCorrupt, x)
}

// A postingPart is the additions or the deletions of an encoded posting. It aliases the
// value.
type postingPart struct {
	form byte
	b    []byte
}

// splitPosting finds the two parts of a posting, and does not read them.
func splitPosting(value []byte) (added, deleted postingPart, err error) {
	bad := func(what string) (_, _ postingPart, err error) {
		return postingPart{}, postingPart{}, fmt.Errorf("%w: posting: %s", ErrCorrupt, what)
	}
	if len(value) == 0 {
		return bad("no bytes")
	}
	added.form, deleted.form = value[0]&0xf, value[0]>>4
	if added.form > postingBitmap || deleted.form > postingBitmap {
		return bad(fmt.Sprintf("unknown forms %#x", value[0]))
	}
	b := value[1:]
	switch {
	case deleted.form == postingNone:
		added.b = b
	case added.form == postingNone:
		deleted.b = b
	default:
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return bad("bad length of the additions")
		}
		added.b, deleted.b = b[n:][:size], b[n:][size:]
	}
	for _, p := range []postingPart{added, deleted} {
		if (p.form == postingNone) != (len(p.b) == 0) {
			return bad(fmt.Sprintf("forms %#x for %d bytes", value[0], len(p.b)))
		}
	}
	return added, deleted, nil
}

// appendTo appends the numbers to dst. With an error it returns dst unchanged.
func (p postingPart) appendTo(dst []uint32) ([]uint32, error) {
	if p.form != postingBitmap {
		return appendDeltas(dst, p.b)
	}
	set, err := p.bitmap()
	if err != nil {
		return dst, err
	}
	n, more := len(dst), int(set.GetCardinality())
	dst = slices.Grow(dst, more)[:n+more]
	out := dst[n:]
	set.ToExistingArray(&out)
	return dst, nil
}

// bitmap returns the numbers as a bitmap with memory of its own.
func (p postingPart) bitmap() (*roaring.Bitmap, error) {
	set := roaring.New()
	if p.form != postingBitmap {
		list, err := p.appendTo(nil)
		set.AddMany(list)
		return set, err
	}
	if len(p.b) < 4 || binary.LittleEndian.Uint32(p.b) != roaringCookie {
		return nil, fmt.Errorf("%w: posting: no bitmap without runs", ErrCorrupt)
	}
	if err := decodeBitmap(set, p.b, math.MaxUint32); err != nil {
		return nil, err
	}
	if set.IsEmpty() {
		return nil, fmt.Errorf("%w: posting: empty bitmap", ErrCorrupt)
	}
	return set, nil
}

const (
	deltaBytes = binary.MaxVarintLen32
	deltaStops = 0x8080808080808080 // the top bits of eight bytes; the last byte of a delta has it clear
)

// appendDeltas appends the numbers that deltas spell to dst. With an error it returns
// dst unchanged.
func appendDeltas(dst []uint32, b []byte) ([]uint32, error) {
	if len(b) == 0 {
		return dst, nil
	}
	from, count := len(dst), countDeltas(b)
	grown := slices.Grow(dst, count)[:from+count]
	out := grown[from:]
	bad := uint64(b[len(b)-1] & 0x80) // whether the last delta runs over the end
	next := uint64(0)                 // the least number that can follow
	for len(b) >= 8 && len(out) > 0 {
		w := binary.LittleEndian.Uint64(b)
		if w&deltaStops == 0 && len(out) >= 8 { // as for most numbers of a long posting
			for k := range 8 {
				next += w >> (8 * k) & 0x7f
				out[k] = uint32(next)
				next++
			}
			bad |= (next - 1) >> 32
			b, out = b[8:], out[8:]
			continue
		}
		x, n, long := firstDelta(w)
		if next += x; n > deltaBytes {
			break
		}
		out[0] = uint32(next)
		bad |= next>>32 | long
		next++
		b, out = b[n:], out[1:]
	}
	if len(b) >= 8 {
		bad = 1
	}
	var rest [8]byte
	copy(rest[:], b)
	w := binary.LittleEndian.Uint64(rest[:])
	for ; len(out) > 0 && bad == 0; out = out[1:] {
		x, n, long := firstDelta(w)
		if next += x; n > deltaBytes {
			bad = 1
		}
		out[0] = uint32(next)
		bad |= next>>32 | long
		next++
		w >>= 8 * n
	}
	if bad != 0 {
		return dst, fmt.Errorf("%w: posting: bad delta", ErrCorrupt)
	}
	return grown, nil
}

// firstDelta reads the delta in the first of the bytes of w, and its length. The length
// is more than deltaBytes if there is no delta. long is not 0 if a shorter form would
// have done. It has no branches, as lengths of deltas cannot be predicted.
func firstDelta(w uint64) (x uint64, n int, long uint64) {
	stop := ^w & deltaStops
	n = bits.TrailingZeros64(stop)/8 + 1
	w &= stop ^ (stop - 1) // the bits up to the stop
	x = w&0x7f | w>>1&0x3f80 | w>>2&0x1fc000 | w>>3&0xfe00000 | w>>4&0x7f0000000
	return x, n, (x>>(7*n-7&63) - 1) & uint64(1-n) >> 63
}

// countDeltas returns the number of deltas.
func countDeltas(b []byte) (n int) {
	for ; len(b) >= 8; b = b[8:] {
		n += bits.OnesCount64(^binary.LittleEndian.Uint64(b) & deltaStops)
	}
	for _, x := range b {
		n += int(x>>7 ^ 1)
	}
	return n
}

// numbers are the additions or the deletions of a posting to be written: a list, or an
// encoded bitmap.
type numbers struct {
	form   byte
	size   int // bytes of the form
	list   []uint32
	bitmap []byte
}

// listNumbers chooses the form of an ascending list.
func listNumbers(list []uint32) numbers {
	if len(list) == 0 {
		return numbers{}
	}
	n := numbers{form: postingDeltas, list: list}
	next := uint32(0)
	for _, x := range list {
		n.size += uvarintLen(x - next)
		next = x + 1
	}
	if len(list) > arrayContainer {
		if size := bitmapSize(list); size < n.size {
			n.form, n.size = postingBitmap, size
		}
	}
	return n
}

func uvarintLen(x uint32) int { return (bits.Len32(x|1) + 6) / 7 }

// bitmapNumbers chooses the form of the numbers of a bitmap.
func bitmapNumbers(set *roaring.Bitmap) (numbers, error) {
	count := set.GetCardinality()
	if !set.HasRunCompression() && set.GetSerializedSizeInBytes() >= count {
		return listNumbers(set.ToArray()), nil
	}
	// The bitmap is shorter than deltas, which take at least a byte a number. But
	// roaring turns full containers into runs, which may mislead this comparison.
	var b []byte
	var err error
	if set.HasRunCompression() {
		b = appendBitmap(nil, int(set.Stats().Containers), roaring.Values(set))
	} else if b, err = set.ToBytes(); err != nil {
		return numbers{}, err
	}
	if uint64(len(b)) >= count {
		return listNumbers(set.ToArray()), nil
	}
	return numbers{form: postingBitmap, size: len(b), bitmap: b}, nil
}

// appendPosting appends an encoded posting.
func appendPosting(dst []byte, added, deleted numbers) []byte {
	dst = slices.Grow(dst, 1+deltaBytes+added.size+deleted.size+8)
	dst = append(dst, added.form|deleted.form<<4)
	if added.form != postingNone && deleted.form != postingNone {
		dst = binary.AppendUvarint(dst, uint64(added.size))
	}
	return deleted.append(added.append(dst))
}

func (n numbers) append(dst []byte) []byte {
	if n.bitmap != nil {
		return append(dst, n.bitmap...)
	}
	if n.form == postingBitmap {
		return appendBitmap(dst, countContainers(n.list), slices.Values(n.list))
	}
	at := len(dst)
	dst = slices.Grow(dst, n.size+8)[:at+n.size+8]
	next := uint32(0)
	for _, x := range n.list {
		// Bytes beyond the delta are overwritten by the next one.
		size := uvarintLen(x - next)
		binary.LittleEndian.PutUint64(dst[at:], spread(x-next)|deltaStops>>(64-8*(size-1)))
		at += size
		next = x + 1
	}
	return dst[:at]
}

// spread moves the bits of x to the bits that a uvarint uses in eight bytes.
func spread(x uint32) uint64 {
	w := uint64(x)
	return w&0x7f | w&0x3f80<<1 | w&0x1fc000<<2 | w&0xfe00000<<3 | w&0xf0000000<<4
}

// containers yields the lengths of the runs of an ascending list that share their upper
// 16 bits.
func containers(list []uint32) iter.Seq[int] {
	return func(yield func(int) bool) {
		for len(list) > 0 {
			n, _ := slices.BinarySearch(list, list[0]|0xffff)
			if n < len(list) && list[n] == list[0]|0xffff {
				n++
			}
			if !yield(n) {
				return
			}
			list = list[n:]
		}
	}
}

func countContainers(list []uint32) (n int) {
	for range containers(list) {
		n++
	}
	return n
}

// bitmapSize returns the number of bytes that appendBitmap appends.
func bitmapSize(list []uint32) int {
	size := 8
	for n := range containers(list) {
		size += 8 + min(2*n, bitmapContainer)
	}
	return size
}

// appendBitmap appends ascending numbers as a roaring bitmap without run containers:
// the cookie; the number of containers; for each container the upper 16 bits and the
// count less one; for each container its start; and the containers.
func appendBitmap(dst []byte, count int, ascending iter.Seq[uint32]) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, roaringCookie)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(count))
	head := len(dst)
	dst = append(dst, make([]byte, 8*count)...)
	var low []uint16
	var upper uint32
	flush := func() {
		if len(low) == 0 {
			return
		}
		binary.LittleEndian.PutUint16(dst[head:], uint16(upper))
		binary.LittleEndian.PutUint16(dst[head+2:], uint16(len(low)-1))
		binary.LittleEndian.PutUint32(dst[head+4*count:], uint32(len(dst)-start))
		if head += 4; len(low) <= arrayContainer {
			for _, x := range low {
				dst = binary.LittleEndian.AppendUint16(dst, x)
			}
		} else {
			at := len(dst)
			dst = append(dst, make([]byte, bitmapContainer)...)
			for _, x := range low {
				dst[at+int(x>>3)] |= 1 << (x & 7)
			}
		}
		low = low[:0]
	}
	for x := range ascending {
		if x>>16 != upper {
			flush()
			upper = x >> 16
		}
		low = append(low, uint16(x))
	}
	flush()
	return dst
}

// A postingEdit is an encoded posting, split into additions and deletions.
type postingEdit [2]postingPart

func (e postingEdit) hasBitmap() bool {
	return e[0].form == postingBitmap || e[1].form == postingBitmap
}

// addPostings returns the sum of encoded edits of a posting, given oldest first. If
// final, no older edit exists, and deletions are not recorded. Edits without bitmaps
// are added in one pass over their numbers. Bitmaps are changed in place by the edits
// between them.
func addPostings(values [][]byte, final bool) ([]byte, error) {
	edits := make([]postingEdit, len(values))
	bitmaps := false
	for i, v := range values {
		var err error
		if edits[i][0], edits[i][1], err = splitPosting(v); err != nil {
			return nil, err
		}
		bitmaps = bitmaps || edits[i].hasBitmap()
	}
	if len(edits) == 1 && (!final || edits[0][1].form == postingNone) {
		_, _, err := DecodePosting(values[0])
		return values[0], err
	}
	if bitmaps {
		return addBitmaps(edits, final)
	}
	added, deleted, err := addDeltas(edits)
	if err != nil {
		return nil, err
	}
	if final {
		deleted = nil
	}
	return AppendPosting(nil, added, deleted), nil
}

// addDeltas adds edits without bitmaps, given oldest first.
//
// An operation is one word about a number: the number, how many edits are younger, and
// whether it is deleted. In order, the first operation on each number is the valid one.
// The longest list is not sorted in, so many small edits of a long posting cost their
// own sorting and one pass over it. Code numbers grow with time, so the operations are
// often in order already.
func addDeltas(edits []postingEdit) (added, deleted []uint32, err error) {
	operation := func(edit, part int) uint64 { // on number 0
		return uint64(len(edits)-1-edit)<<1 | uint64(part)
	}
	edit, part := 0, 0 // of the longest list
	for i, e := range edits {
		for j, p := range e {
			if len(p.b) > len(edits[edit][part].b) {
				edit, part = i, j
			}
		}
	}
	base, err := edits[edit][part].appendTo(nil)
	if err != nil {
		return nil, nil, err
	}
	var operations []uint64
	var scratch []uint32
	for i, e := range edits {
		for j, p := range e {
			if i == edit && j == part {
				continue
			}
			if scratch, err = p.appendTo(scratch[:0]); err != nil {
				return nil, nil, err
			}
			for _, x := range scratch {
				operations = append(operations, uint64(x)<<32|operation(i, j))
			}
		}
	}
	slices.Sort(operations)

	into := [2]*[]uint32{&added, &deleted}
	*into[part] = make([]uint32, 0, len(base)+len(operations))
	last := uint64(math.MaxUint64) // no operation, as no edit has 2^31 younger ones
	for len(base) > 0 || len(operations) > 0 {
		var next uint64
		if len(base) > 0 {
			next = uint64(base[0])<<32 | operation(edit, part)
		}
		fromBase := len(base) > 0 && (len(operations) == 0 || next < operations[0])
		if fromBase {
			base = base[1:]
		} else {
			next, operations = operations[0], operations[1:]
		}
		if next>>1 == last>>1 {
			return nil, nil, errBothWays(uint32(next >> 32))
		}
		if next>>32 != last>>32 || last == math.MaxUint64 {
			*into[next&1] = append(*into[next&1], uint32(next>>32))
		}
		last = next
		if fromBase { // numbers up to the next operation are valid
			n := 0
			for n < len(base) && (len(operations) == 0 || uint64(base[n]) < operations[0]>>32) {
				n++
			}
			*into[part] = append(*into[part], base[:n]...)
			base = base[n:]
		}
	}
	return added, deleted, nil
}

// addBitmaps adds edits, some of them with bitmaps, given oldest first.
func addBitmaps(edits []postingEdit, final bool) ([]byte, error) {
	sum := NewLayer()
	for len(edits) > 0 {
		short := slices.IndexFunc(edits, postingEdit.hasBitmap)
		if short < 0 {
			short = len(edits)
		}
		var l Layer
		if short > 0 {
			added, deleted, err := addDeltas(edits[:short])
			if err != nil {
				return nil, err
			}
			l, edits = Layer{roaring.BitmapOf(added...), roaring.BitmapOf(deleted...)}, edits[short:]
		} else {
			var err error
			if l.Added, err = edits[0][0].bitmap(); err != nil {
				return nil, err
			}
			if l.Deleted, err = edits[0][1].bitmap(); err != nil {
				return nil, err
			}
			if both := roaring.And(l.Added, l.Deleted); !both.IsEmpty() {
				return nil, errBothWays(both.Minimum())
			}
			edits = edits[1:]
		}
		sum.apply(l)
	}
	added, err := bitmapNumbers(sum.Added)
	if err != nil {
		return nil, err
	}
	var deleted numbers
	if !final {
		if deleted, err = bitmapNumbers(sum.Deleted); err != nil {
			return nil, err
		}
	}
	return appendPosting(nil, added, deleted), nil
}
