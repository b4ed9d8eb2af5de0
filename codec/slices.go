package codec

import (
	"math"

	"github.com/RoaringBitmap/roaring/v2"
)

// Numbers and booleans that are indexed are kept bit-sliced: a value becomes 64
// bits whose order is that of the values, its image, and for each bit there is a
// set of the rows that have it set, a slice; slice 0 is the rows that have a value
// at all. A write touches at most 65 small layers and a comparison reads at most
// 65, however many values there are; of the bits that all values share as zero
// there is no slice.
const (
	SliceExists = 0
	SliceCount  = 65
)

// SliceOf returns the slice of a bit, 0 being the lowest. They are numbered from
// the highest bit down, the order in which a comparison reads them.
func SliceOf(bit int) byte { return byte(64 - bit) }

// IntImage returns the image of an integer.
func IntImage(x int64) uint64 { return uint64(x) ^ 1<<63 }

// FloatImage returns the image of a float that is not NaN. -0 has that of 0.
//
// Positive floats are ordered like their bits; with the sign set the order is the
// opposite, so all bits are turned round.
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

// A Container is a set of the 65,536 rows of one container, a bit each. Comparisons
// go through so many slices that the words themselves are faster than any
// compressed form of them.
type Container [1 << 10]uint64

// Set makes c the set b, whose numbers are below 65,536.
func (c *Container) Set(b *roaring.Bitmap) {
	clear(c[:])
	b.WriteDenseTo(c[:])
}

// Between returns, of the rows among, those whose image is from lo to hi, both
// included. slice returns the rows that have a bit set, nil for none; it is asked
// for bits from the highest down, and for lower ones only where they matter.
// Nothing that it returns is changed. The error is one of slice.
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
	return roaring.FromDense(found[:], true), nil
}

// keepUpTo keeps the rows whose image is at most limit. It is algorithm 4.2 of
// O'Neil and Quass, "Improved query performance with variant indexes" (SIGMOD
// 1997): from the highest bit down, same holds the rows that agree with limit so
// far. A row that has a 0 where limit has a 1 is less whatever follows, one that has
// a 1 where limit has a 0 is greater. Where limit goes on with nothing but ones,
// none of the rows that agree so far can be greater.
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
			break // all that agree so far are less
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
