package random

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
)

// A generator that was advanced gives what one gives that has been asked as often.
func TestAdvanced(t *testing.T) {
	for _, seeds := range [][2]uint64{{0, 0}, {1, Signs}, {1 << 63, 1<<64 - 1}, {0x123456789abcdef, 77}} {
		stepped := rand.NewPCG(seeds[0], seeds[1])
		for n := range uint64(3000) {
			if n < 70 || n%100 == 7 {
				if got, want := advanced(seeds[0], seeds[1], n).Uint64(), *stepped; got != want.Uint64() {
					t.Fatalf("seeds %d: number %d is another one", seeds, n)
				}
			}
			stepped.Uint64()
		}
	}
	// In two parts, far out.
	far := advanced(3, 4, 1<<40)
	for range 1 << 10 {
		far.Uint64()
	}
	if far.Uint64() != advanced(3, 4, 1<<40+1<<10).Uint64() {
		t.Fatal("far out the numbers are others")
	}
}

func TestSignsFrom(t *testing.T) {
	for _, q := range []int{8, 64, 72, 128} {
		all := SignsFrom(5, q, 0)
		for item := range 100 {
			want, got := codec.NewCode(q), codec.NewCode(q)
			all(want)
			SignsFrom(5, q, item)(got)
			if !slices.Equal(got, want) {
				t.Fatalf("%d bits: the code of item %d is another one", q, item)
			}
		}
	}
}
