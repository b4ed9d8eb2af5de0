package mih

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPackedNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for _, limit := range []int{1, 1000, 1 << 24, 1<<24 + 1, 1 << 32} {
		numbers := make([]uint32, 100)
		for i := range numbers {
			numbers[i] = uint32(rng.Uint64N(uint64(limit)))
		}
		numbers[50], numbers[99] = uint32(limit-1), uint32(limit-1)
		both := newPacked(2, len(numbers), limit)
		p := both[1]
		p.setAll(numbers)
		both[0].setAll(make([]uint32, len(numbers)))
		var all []uint32
		for i, x := range numbers {
			if got := p.at(uint32(i)); got != x {
				t.Errorf("below %d: %d, want %d", limit, got, x)
			}
			all = append(all, uint32(i))
		}
		p.replace(all)
		if !slices.Equal(all, numbers) {
			t.Errorf("below %d: %d, want %d", limit, all, numbers)
		}
	}
}
