package model

import "math/rand/v2"

// breakTies gives the zeros of H0 Y' random signs. A label with an even number of items
// has many zeros; one of two items has them in half of its bits. In these bits the
// little that the polar factor takes from other labels would decide, for all of them
// alike. Two classes of two items would then agree in 57 of 64 bits.
func breakTies(hy []float64, rng *rand.Rand) {
	for i, v := range hy {
		if v == 0 {
			hy[i] = float64(rng.IntN(2)*2 - 1)
		}
	}
}
