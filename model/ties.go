package model

import "math/rand/v2"

// breakTies gives the zeros of H0 Y' random signs. A label of an even number of
// items has many, one of two items in half of the bits; there what little the
// polar factor takes from the other labels would decide, for all such bits alike, and
// two classes of two items agree in 57 of 64 bits.
func breakTies(hy []float64, rng *rand.Rand) {
	for i, v := range hy {
		if v == 0 {
			hy[i] = float64(rng.IntN(2)*2 - 1)
		}
	}
}
