package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// A Layer is a change to a set of small numbers: the numbers it adds and those it
// deletes. Sets that many writes touch (live rows, presence of a modality) are stored
// as layers by container. So a write stores a few bytes, and a merge never rewrites
// more than one container.
//
//	byte     1
//	uvarint  length of the additions
//	         additions, a roaring bitmap in the portable format
//	         deletions, likewise, to the end; absent when there are none
//
// The algebra: applying a layer (A, D) to a set S gives (S \ D) u A, with A and D
// disjoint. Applying (A1, D1) and then (A2, D2) is applying
//
//	A = (A1 \ D2) u A2,  D = (D1 \ A2) u D2,
//
// because (((S \ D1) u A1) \ D2) u A2 = (S \ (D1 u D2)) u (A1 \ D2) u A2, and taking A2
// out of D changes nothing as A2 is added back. A and D are disjoint again. Once no
// older layer exists, S is empty and D may be dropped.
type Layer struct {
	Added, Deleted *roaring.Bitmap
}

const layerVersion = 1

// NewLayer returns the layer that changes nothing.
func NewLayer() Layer { return Layer{roaring.New(), roaring.New()} }

// Add puts x into the set.
func (l Layer) Add(x uint16) {
	l.Added.Add(uint32(x))
	l.Deleted.Remove(uint32(x))
}

// Delete takes x out of the set.
func (l Layer) Delete(x uint16) {
	l.Deleted.Add(uint32(x))
	l.Added.Remove(uint32(x))
}

// apply makes l the composition of l, applied first, and newer. Afterwards l may alias
// newer, which must not be written to any more.
func (l Layer) apply(newer Layer) {
	l.Added.AndNot(newer.Deleted)
	l.Added.Or(newer.Added)
	l.Deleted.AndNot(newer.Added)
	l.Deleted.Or(newer.Deleted)
}

// maxRunBytes bounds additions that are stored as runs: about 120 runs.
const maxRunBytes = 512

// compact returns the layer in the form that is best to store. A few runs of
// consecutive numbers are short. Many runs may still be shorter than a bitmap. But
// every reader checks them, in time quadratic in their number: milliseconds for two
// thousand. The result aliases l, which must not be used any more.
func (l Layer) compact() Layer {
	l.Added.RunOptimize()
	if l.Added.HasRunCompression() && l.Added.GetSerializedSizeInBytes() > maxRunBytes {
		var c Container
		c.Set(l.Added)
		l.Added = roaring.FromDense(c[:], true)
	}
	return l
}

// Append appends the encoded layer. If final, no older layer exists, and deletions are
// not recorded.
func (l Layer) Append(dst []byte, final bool) ([]byte, error) {
	added, err := l.Added.ToBytes()
	if err != nil {
		return nil, err
	}
	dst = append(dst, layerVersion)
	dst = binary.AppendUvarint(dst, uint64(len(added)))
	dst = append(dst, added...)
	if final || l.Deleted.IsEmpty() {
		return dst, nil
	}
	deleted, err := l.Deleted.ToBytes()
	if err != nil {
		return nil, err
	}
	return append(dst, deleted...), nil
}

// DecodeLayer reads a layer. It copies, so the caller may reuse b. The error wraps
// ErrCorrupt.
func DecodeLayer(b []byte) (Layer, error) {
	if len(b) == 0 || b[0] != layerVersion {
		return Layer{}, fmt.Errorf("%w: layer: does not start with version %d", ErrCorrupt, layerVersion)
	}
	size, n := binary.Uvarint(b[1:])
	if n <= 0 || size > uint64(len(b)-1-n) {
		return Layer{}, fmt.Errorf("%w: layer: bad length of the additions", ErrCorrupt)
	}
	b = b[1+n:]
	l := NewLayer()
	if err := decodeBitmap(l.Added, b[:size], math.MaxUint16); err != nil {
		return Layer{}, err
	}
	if b = b[size:]; len(b) > 0 {
		if err := decodeBitmap(l.Deleted, b, math.MaxUint16); err != nil {
			return Layer{}, err
		}
	}
	if l.Added.Intersects(l.Deleted) {
		return Layer{}, fmt.Errorf("%w: layer: adds and deletes the same number", ErrCorrupt)
	}
	return l, nil
}

// decodeBitmap reads a bitmap of numbers up to largest from all of b, which it copies.
// It follows roaring's contract for untrusted bytes: read, validate, use.
func decodeBitmap(into *roaring.Bitmap, b []byte, largest uint32) (err error) {
	defer func() {
		if r := recover(); r != nil { // not all readers of the library check bounds
			err = fmt.Errorf("%w: bitmap: %v", ErrCorrupt, r)
		}
	}()
	// FromUnsafeBytes would alias b, a Pebble value that is soon closed.
	n, err := into.FromBuffer(append([]byte(nil), b...))
	if err == nil && n != int64(len(b)) {
		err = fmt.Errorf("%d bytes of %d read", n, len(b))
	}
	if err == nil && into.IsEmpty() {
		return nil
	}
	if err == nil {
		err = into.Validate()
	}
	if err == nil && into.Maximum() > largest {
		err = fmt.Errorf("holds %d, more than %d", into.Maximum(), largest)
	}
	if err != nil {
		return fmt.Errorf("%w: bitmap: %w", ErrCorrupt, err)
	}
	return nil
}

// Indexed numbers, booleans and times are stored bit-sliced. A value becomes its image: 64
// bits, in the same order as the values. For each bit there is a slice: the set of rows
// whose image has it set. Slice 0 is the rows that have a value at all. A write touches
// at most 65 small layers, and a comparison reads at most 65, however many values there
// are. A bit that is zero in all values has no slice.
const (
	SliceExists = 0
	SliceCount  = 65
)

// SliceOf returns the number of the slice of a bit; bit 0 is the lowest. Slices are
// numbered from the highest bit down, the order in which a comparison reads them.
func SliceOf(bit int) byte { return byte(64 - bit) }

// IntImage returns the image of an integer, or of the microseconds of a Time.
func IntImage(x int64) uint64 { return uint64(x) ^ 1<<63 }

// FloatImage returns the image of a float that is not NaN. -0 and 0 have the same
// image.
//
// Positive floats are ordered like their bits. Negative floats have the opposite order,
// so all their bits are inverted.
func FloatImage(x float64) uint64 {
	if x == 0 {
		return 1 << 63
	}
	b := math.Float64bits(x)
	if b>>63 == 1 {
		return ^b
	}
	return b | 1<<63
}

// BoolImage returns the image of a boolean: false is less than true.
func BoolImage(x bool) uint64 {
	if x {
		return 1
	}
	return 0
}

// IntOf returns the integer that an image is of.
func IntOf(image uint64) int64 { return int64(image ^ 1<<63) }

// FloatOf returns the float that an image is of; of -0 and 0 it is 0.
func FloatOf(image uint64) float64 {
	if image>>63 == 0 {
		return math.Float64frombits(^image)
	}
	return math.Float64frombits(image ^ 1<<63)
}

// BoolOf returns the boolean that an image is of.
func BoolOf(image uint64) bool { return image != 0 }

// A Container is a set of the 65,536 rows of one container, a bit each. Comparisons
// combine so many slices that plain words are faster than any compressed form.
type Container [1 << 10]uint64

// Set makes c the set b. The numbers of b must be below 65,536.
func (c *Container) Set(b *roaring.Bitmap) {
	clear(c[:])
	b.WriteDenseTo(c[:])
}

// Add puts x into the set.
func (c *Container) Add(x uint16) { c[x>>6] |= 1 << (x & 63) }

// Rows returns the set as a bitmap of its own.
func (c *Container) Rows() *roaring.Bitmap { return roaring.FromDense(c[:], true) }

// Between returns the rows of among whose image is from lo to hi, both included. slice
// returns the rows that have a bit set, or nil for none. Between calls it for bits from
// the highest down, and for lower bits only if they matter. It does not change the
// returned containers. The error is one of slice.
func Between(among *Container, slice func(bit int) (*Container, error), lo,
	hi uint64) (*roaring.Bitmap, error) {
	if lo > hi {
		return roaring.New(), nil
	}
	found := *among
	if err := found.keepUpTo(slice, hi); err != nil {
		return nil, err
	}
	if lo > 0 {
		under := found
		if err := under.keepUpTo(slice, lo-1); err != nil {
			return nil, err
		}
		for i := range found {
			found[i] &^= under[i]
		}
	}
	return found.Rows(), nil
}

// keepUpTo keeps the rows whose image is at most limit. It is algorithm 4.2 of O'Neil
// and Quass, "Improved query performance with variant indexes" (SIGMOD 1997). It goes
// from the highest bit down; same holds the rows that agree with limit so far. A row
// with a 0 where limit has a 1 is less, whatever follows. A row with a 1 where limit
// has a 0 is greater. If the rest of limit is all ones, no row that agrees so far can
// be greater.
func (c *Container) keepUpTo(slice func(bit int) (*Container, error), limit uint64) error {
	same := *c
	clear(c[:])
	for bit := 63; bit >= 0; bit-- {
		if rest := uint64(1)<<bit<<1 - 1; limit&rest == rest {
			break
		}
		set, err := slice(bit)
		if err != nil {
			return err
		}
		one := limit>>bit&1 == 1
		if set == nil && one {
			break // no row that agrees so far is greater
		} else if set == nil {
			continue
		}
		left := uint64(0)
		for i, x := range set {
			if one {
				c[i] |= same[i] &^ x
				same[i] &= x
			} else {
				same[i] &^= x
			}
			left |= same[i]
		}
		if left == 0 {
			return nil
		}
	}
	for i := range c {
		c[i] |= same[i]
	}
	return nil
}

// PartnersRoom is the room that the dst of Partners needs beyond the possible finds: a
// kernel may store a whole vector for one find.
const PartnersRoom = 16

// Partners goes through the 16-bit values of ranges, values[from[i]] to values[to[i]-1]
// for each i in order. It finds the values that differ from query in at least least and
// at most most bits. It writes their ids to dst, in this order, and returns their
// number. The id of values[p] is ids[p], or p itself if ids is nil. Ranges may be
// empty, overlap and come in any order. len(from) must equal len(to), len(ids) must
// equal len(values), and len(dst) must be at least the sum of the lengths of the ranges
// plus PartnersRoom. Partners may write to any element of dst. It panics if a range is
// reversed or does not lie within the values.
//
// Like WithinRanges it is meant for many short ranges scattered over arrays that are
// larger than the caches. It allocates nothing and keeps none of the slices.
func Partners(dst []uint32, query uint16, values []uint16, ids, from, to []uint32, least, most int) int {
	if len(from) != len(to) || ids != nil && len(ids) != len(values) {
		panic(fmt.Sprintf("codec: %d beginnings and %d ends of ranges, %d ids of %d values", len(from),
			len(to), len(ids), len(values)))
	}
	if len(from) == 0 {
		return 0
	}
	// Ranges are checked for any bounds, so impossible bounds run too.
	least, most = max(min(least, 17), 0), max(min(most, 16), -1)
	if most < least {
		least, most = 17, 17
	}
	found := partnersBy(active, dst, query, values, from, to, least, most)
	if found < 0 {
		room := len(dst) - PartnersRoom
		for i := range from {
			if from[i] > to[i] || int(to[i]) > len(values) {
				panic(fmt.Sprintf("codec: range %d from %d to %d of %d values", i, from[i], to[i],
					len(values)))
			}
			room -= int(to[i] - from[i])
		}
		panic(fmt.Sprintf("codec: %d results are %d too few for the ranges", len(dst), -room))
	}
	// Kernels find positions. So only the ids of finds are read, many at a time.
	if ids != nil {
		for i, p := range dst[:found] {
			dst[i] = ids[p]
		}
	}
	return found
}

// partnersGeneric returns -1 if a range is reversed or ends beyond the values, or if
// dst is shorter than Partners requires.
func partnersGeneric(dst []uint32, query uint16, values []uint16, from, to []uint32, least, most int) int {
	found, room := 0, len(dst)-PartnersRoom
	for i, first := range from {
		last := to[i]
		if first > last || int(last) > len(values) {
			return -1
		}
		if room -= int(last - first); room < 0 {
			return -1
		}
		found += partnersOfRange(dst[found:], query, values, int(first), int(last), least, most)
	}
	return found
}

// partnersOfRange counts the bits of four values at a time, in 16-bit lanes of a word.
// It looks at single values only if one of the four is a find.
func partnersOfRange(dst []uint32, query uint16, values []uint16, first, last, least, most int) int {
	const ones = 0x0001000100010001
	queries, above, below := ones*uint64(query), ones*uint64(0x80-least), ones*uint64(0x80+most)
	found := 0
	for p := first; p < last; p += 4 {
		var x uint64
		if rest := values[p:]; len(rest) >= 4 {
			// This is one load. Values behind the range are masked out below.
			x = uint64(rest[0]) | uint64(rest[1])<<16 | uint64(rest[2])<<32 | uint64(rest[3])<<48
		} else {
			for i, v := range rest {
				x |= uint64(v) << (16 * i)
			}
		}
		x ^= queries
		x -= x >> 1 & (ones * 0x5555)
		x = x&(ones*0x3333) + x>>2&(ones*0x3333)
		x = (x + x>>4) & (ones * 0x0f0f)
		x = (x + x>>8) & (ones * 0x1f)
		// Neither the addition nor the subtraction carries into the next lane.
		hits := (x + above) & (below - x) & (ones * 0x80)
		hits &= 1<<(16*uint(last-p)) - 1
		for ; hits != 0; hits &= hits - 1 {
			dst[found] = uint32(p + bits.TrailingZeros64(hits)/16)
			found++
		}
	}
	return found
}

// A Merger adds up the values that were written with Merge under one key: block edits,
// layers or postings, by the kind of the key. Newer operands win. Its results are
// associative, as the storage engine may add any run of neighbours before the rest:
// entries that an edit clears, and numbers that a layer or posting deletes, stay
// recorded until Finish is told that the oldest value is among the operands.
//
// The zero value is not ready: use NewMerger. It is not safe for concurrent use.
type Merger struct {
	kind  byte     // of the key
	newer [][]byte // copies, oldest first
	older [][]byte // copies, older than all of newer, youngest first
	room  []byte   // memory for copies: operands are often many and short
}

// An addition is how the values under one key add up.
type addition struct {
	sum   func(m *Merger, final bool) ([]byte, error) // see Merger.Finish
	empty func(value []byte) bool                     // see EmptySum
}

var (
	blocks   = addition{(*Merger).sumBlocks, isEmptyBlock}
	layers   = addition{(*Merger).sumLayers, isEmptyLayer}
	postings = addition{(*Merger).sumPostings, isEmptyPosting}
)

// additions has an entry for each kind whose values are written with Merge.
var additions = [256]addition{
	KindRowKeys:    blocks,
	KindRowCodes:   blocks,
	KindCodes:      blocks,
	KindProjection: blocks,
	KindLessons:    blocks,
	KindEntries:    blocks,

	KindCodeRows:   layers,
	KindRows:       layers,
	KindFieldRows:  layers,
	KindFieldWords: layers,
	KindOnlineRows: layers,
	KindStale:      layers,

	KindSubstring: postings,
}

// Merged reports whether values of keys of this kind are written with Merge.
func Merged(kind byte) bool { return additions[kind].sum != nil }

// NewMerger starts with one operand for the key; it copies the value.
func NewMerger(key, value []byte) (*Merger, error) {
	if len(key) == 0 || !Merged(key[0]) {
		return nil, fmt.Errorf("%w: merge under key %x", ErrCorrupt, key)
	}
	m := &Merger{kind: key[0]}
	m.Newer(value)
	return m, nil
}

// Newer adds an operand newer than all so far; it copies the value.
func (m *Merger) Newer(value []byte) {
	m.newer = append(m.newer, m.keep(value))
}

// Older adds an operand older than all so far; it copies the value.
func (m *Merger) Older(value []byte) {
	m.older = append(m.older, m.keep(value))
}

// keep returns a copy of the value.
func (m *Merger) keep(value []byte) []byte {
	if cap(m.room)-len(m.room) < len(value) {
		m.room = make([]byte, 0, max(len(value), min(2*cap(m.room), 1<<16)))
	}
	from := len(m.room)
	m.room = append(m.room, value...)
	return m.room[from:len(m.room):len(m.room)]
}

// operands yields the operands, youngest first.
func (m *Merger) operands(yield func([]byte) bool) {
	for _, v := range slices.Backward(m.newer) {
		if !yield(v) {
			return
		}
	}
	for _, v := range m.older {
		if !yield(v) {
			return
		}
	}
}

// oldestFirst returns the operands, oldest first.
func (m *Merger) oldestFirst() [][]byte {
	all := slices.Clone(m.older)
	slices.Reverse(all)
	return append(all, m.newer...)
}

// Finish returns the sum of the operands. final says that the oldest value ever written
// under the key is among them.
func (m *Merger) Finish(final bool) ([]byte, error) { return additions[m.kind].sum(m, final) }

func (m *Merger) sumBlocks(final bool) ([]byte, error) {
	single := len(m.newer)+len(m.older) == 1
	var sum *BlockEdit
	for value := range m.operands {
		b, err := DecodeBlock(value)
		if err != nil {
			return nil, err
		}
		if single && (len(b.cleared) == 0 || !final) {
			return value, nil
		}
		if sum == nil {
			sum = NewBlockEdit(b.width)
		}
		if b.width != sum.width {
			return nil, fmt.Errorf("%w: block: entries of %d and %d bytes", ErrCorrupt, b.width, sum.width)
		}
		sum.Under(b)
	}
	return sum.Append(nil, final), nil
}

func (m *Merger) sumLayers(final bool) ([]byte, error) {
	sum := NewLayer()
	for _, value := range m.oldestFirst() {
		l, err := DecodeLayer(value)
		if err != nil {
			return nil, err
		}
		sum.apply(l)
	}
	return sum.compact().Append(nil, final)
}

func (m *Merger) sumPostings(final bool) ([]byte, error) {
	return addPostings(m.oldestFirst(), final)
}

// EmptySum reports whether a complete merged value is empty, so that its key may be
// deleted.
func EmptySum(key, value []byte) bool {
	return Merged(key[0]) && additions[key[0]].empty(value)
}

func isEmptyBlock(value []byte) bool {
	b, err := DecodeBlock(value)
	return err == nil && b.Len() == 0 && len(b.cleared) == 0
}

func isEmptyLayer(value []byte) bool {
	l, err := DecodeLayer(value)
	return err == nil && l.Added.IsEmpty() && l.Deleted.IsEmpty()
}

func isEmptyPosting(value []byte) bool { return len(value) == 1 && value[0] == 0 }
