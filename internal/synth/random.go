package synth

import (
	"math"
	"math/bits"
)

// A stream is a sequence of random words: SplitMix64 (Steele, Lea and Flood, OOPSLA
// 2014). Its state is one word, so every item can have its own stream for every
// purpose. Codes draw integers, and use only floating-point operations that are exact
// or rounded once, so that all machines make the same codes. NUSWide also draws
// floating-point numbers; these are the same on one architecture.
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

// split returns the i-th stream for a purpose.
func (s stream) split(purpose, i uint64) stream {
	return stream(mix(mix(uint64(s)+purpose*golden) ^ i*golden))
}

// below returns a number from 0 to n-1.
func (s *stream) below(n int) int {
	hi, _ := bits.Mul64(s.next(), uint64(n))
	return int(hi)
}

// uniform returns a number in [0, 1).
func (s *stream) uniform() float64 { return float64(s.next()>>11) / (1 << 53) }

// normal returns one of 4,096 quantiles of the normal distribution, drawn at random.
func (s *stream) normal() float64 { return normals[s.next()>>52] }

// normals are quantiles of the normal distribution, deviations quantiles of the
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

// happens returns true with probability p.
func (s *stream) happens(p chance) bool { return s.next()>>48 < uint64(p) }

// coins returns 64 bits, each of which is independently 1 with probability p. Write p
// in binary as .b1 b2 ... From the last digit to the first, a bit is ORed with a fair
// coin if the digit is 1, and ANDed with one if it is 0. Then it is 1 with probability
// p.
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

// byteSum returns the sum of eight uniform numbers from -127.5 to 127.5. It is close to
// a Gaussian with mean 0 and standard deviation 209, and never exceeds 1,020 in size.
func (s *stream) byteSum() int32 {
	const odd = 0x00ff00ff00ff00ff
	w := s.next()
	sums := w&odd + w>>8&odd                                   // four sums of two bytes each
	return int32(sums*0x0001000100010001>>48) - int32(8*255/2) // the product adds them up in its top 16 bits
}
