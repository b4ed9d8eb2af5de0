package synth

import "math/bits"

// A stream is a sequence of random words: SplitMix64 (Steele, Lea and Flood, OOPSLA
// 2014), whose state is one word, so that every item can have its own. All that is
// drawn from it is made with integers, or with floating-point operations that are
// exact or rounded once, so that no machine gives other codes.
type stream uint64

func (s *stream) next() uint64 {
	*s += golden
	return mix(uint64(*s))
}

// split returns the i-th of the streams for a purpose.
func (s stream) split(purpose, i uint64) stream {
	return stream(mix(mix(uint64(s)+purpose*golden) ^ i*golden))
}

// below returns a number from 0 to n-1.
func (s *stream) below(n uint64) uint64 {
	hi, _ := bits.Mul64(s.next(), n)
	return hi
}

// A chance is a probability in 65,536ths.
type chance uint16

const (
	threePercent chance = 1966
	fivePercent  chance = 3277
	oneFifth     chance = 13107
)

// happens says, with that probability, yes.
func (s *stream) happens(p chance) bool { return s.next()>>48 < uint64(p) }

// coins returns 64 bits that are 1 with probability p each, independently. With p =
// .b1 b2 ... in binary, a bit that is ORed with a fair coin where the digit is 1 and
// ANDed where it is 0, from the last digit to the first, is 1 with probability p.
func (s *stream) coins(p chance) uint64 {
	var w uint64
	for i := bits.TrailingZeros16(uint16(p)); i < 16; i++ {
		if p>>i&1 == 1 {
			w |= s.next()
		} else {
			w &= s.next()
		}
	}
	return w
}

// normal returns the sum of eight uniform numbers from -127.5 to 127.5: close to a
// Gaussian of mean 0 and standard deviation 209, and never more than 1,020.
func (s *stream) normal() int32 {
	const odd = 0x00ff00ff00ff00ff
	w := s.next()
	sums := w&odd + w>>8&odd                                   // four sums of two bytes
	return int32(sums*0x0001000100010001>>48) - int32(8*255/2) // added up in the top 16 bits
}
