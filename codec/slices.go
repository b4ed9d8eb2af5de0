package codec

import (
	"math"

	"github.com/RoaringBitmap/roaring/v2"
)

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
func Between(among *Container, slice func(bit int) (*Container, error), lo, hi uint64) (*roaring.Bitmap, error) {
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
