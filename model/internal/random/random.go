// Package random gives the streams of random numbers of a training, each of its own for one seed.
package random

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"github.com/fddhdb/fddhdb/codec"
)

// SignsFrom returns a function that writes the random code H0 of one training item after the
// other, from the item with this number on; bits beyond q are 0. The codes of the items are a single
// stream of the seed, so that it does not matter who makes which.
func SignsFrom(seed uint64, q, item int) func(dst codec.Code) {
	words := codec.Words(q)
	rng := rand.New(advanced(seed, Signs, uint64(item)*uint64(words)))
	return func(dst codec.Code) {
		for i := range dst {
			dst[i] = rng.Uint64()
		}
		if tail := q % 64; tail > 0 {
			dst[len(dst)-1] &= 1<<tail - 1
		}
	}
}

// The generator of math/rand/v2, PCG-DXSM, steps its state of 128 bits by x -> a x + b (mod 2^128)
// for each number that it gives.
var (
	pcgMultiplier = uint128{2549297995355413924, 4865540595714422341}
	pcgIncrement  = uint128{6364136223846793005, 1442695040888963407}
)

// advanced returns the generator of two seeds as it is after n numbers. It takes log n steps: n of
// them together are again of the form x -> a x + b (Brown, "Random number generation with arbitrary
// strides", 1994).
func advanced(seed1, seed2, n uint64) *rand.PCG {
	a, b := uint128{0, 1}, uint128{} // n steps together; so far none
	for step, plus := pcgMultiplier, pcgIncrement; n > 0; n >>= 1 {
		if n&1 == 1 {
			a, b = step.times(a), step.times(b).plus(plus)
		}
		step, plus = step.times(step), step.times(plus).plus(plus)
	}
	state := a.times(uint128{seed1, seed2}).plus(b)
	form := append([]byte("pcg:"), make([]byte, 16)...)
	binary.BigEndian.PutUint64(form[4:], state.high)
	binary.BigEndian.PutUint64(form[12:], state.low)
	pcg := new(rand.PCG)
	if err := pcg.UnmarshalBinary(form); err != nil {
		panic(err) // the form is part of the promises of math/rand/v2
	}
	return pcg
}

// uint128 is a number modulo 2^128.
type uint128 struct{ high, low uint64 }

func (x uint128) times(y uint128) uint128 {
	high, low := bits.Mul64(x.low, y.low)
	return uint128{high + x.high*y.low + x.low*y.high, low}
}

func (x uint128) plus(y uint128) uint128 {
	low, carry := bits.Add64(x.low, y.low, 0)
	high, _ := bits.Add64(x.high, y.high, carry)
	return uint128{high, low}
}

// Streams of random numbers of one seed.
const (
	Signs = iota
	Anchors
	Rotations
	Choice // items to choose with; the same ones in every modality that is complete
	Folds  // order of these items
	Subset // which anchors are kept
	Starts // other starts of C
	Embedding
	Sketch  // sketches of the features of labels
	Parting // parting of labels that share a code
	Ties    // zeros of H0 Y'
	Items   // items to learn from without labels
	Axes    // where the search for principal axes begins
	Turn    // rotations that ITQ begins with, and those that it does not turn
)

// Reservoir returns the places of k random vectors out of any number. Each set of k
// vectors is equally likely (Vitter's algorithm R: vector i is kept with probability
// k/(i+1)).
func Reservoir(rng *rand.Rand, k int) func(i int) int {
	return func(i int) int {
		if i < k {
			return i
		}
		if j := rng.IntN(i + 1); j < k {
			return j
		}
		return -1
	}
}
