package synth

import (
	"math"
	"math/bits"
)

// A stream is a sequence of random words: SplitMix64 (Steele, Lea and Flood, OOPSLA
// 2014), whose state is one word, so that every item can have its own for every
// purpose. Codes draw integers, and use floating-point operations that are exact or
// rounded once, so that no machine gives other codes. NUSWide draws floating-point
// numbers, too: these are the same on one architecture.
type stream uint64

const golden = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (s *stream) next() uint64 {
	*s += golden
	return mix(uint64(*s))
}

// split returns the i-th of the streams for a purpose.
func (s stream) split(purpose, i uint64) stream {
	return stream(mix(mix(uint64(s)+purpose*golden) ^ i*golden))
}

// below returns a number from 0 to n-1.
func (s *stream) below(n int) int {
	hi, _ := bits.Mul64(s.next(), uint64(n))
	return int(hi)
}

// uniform returns a number from 0 to below 1.
func (s *stream) uniform() float64 { return float64(s.next()>>11) / (1 << 53) }

// normal returns one of 4,096 quantiles of the normal distribution.
func (s *stream) normal() float64 { return normals[s.next()>>52] }

// normals are quantiles of the normal distribution, deviations those of the
// exponential distribution.
var normals, deviations = func() (normals [4096]float64, deviations [4096]float32) {
	for i := range normals {
		u := (float64(i) + .5) / 4096
		normals[i] = math.Sqrt2 * math.Erfinv(2*u-1)
		deviations[i] = float32(-math.Log(u))
	}
	return normals, deviations
}()

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

// byteSum returns the sum of eight uniform numbers from -127.5 to 127.5: close to a
// Gaussian of mean 0 and standard deviation 209, and never more than 1,020.
func (s *stream) byteSum() int32 {
	const odd = 0x00ff00ff00ff00ff
	w := s.next()
	sums := w&odd + w>>8&odd                                   // four sums of two bytes
	return int32(sums*0x0001000100010001>>48) - int32(8*255/2) // added up in the top 16 bits
}
