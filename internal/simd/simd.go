// Package simd says which sets of vector instructions this machine can run. Packages that have loops in
// assembly (codec, internal/cells, internal/quant, model/internal/dense) choose among their loops by a Set;
// every set gives the same results.
//
// The functions keep nothing, and any number of goroutines may call them.
package simd

// A Set is a set of vector instructions, or Generic: plain Go.
type Set uint8

// Sets.
const (
	Generic Set = iota
	AVX2        // of amd64, with BMI2, FMA and POPCNT
	AVX512      // of amd64, with F, BW, DQ and VL
	NEON        // of arm64; every machine that Go runs on has it
)

// String returns the name of the set: generic, avx2, avx512 or neon.
func (s Set) String() string { return [...]string{"generic", "avx2", "avx512", "neon"}[s] }

// An Extension is what the loops of a package need besides AVX512.
type Extension uint8

// Extensions of AVX512.
const (
	None      Extension = 0
	VPOPCNTDQ Extension = 1 << iota // counts the bits of numbers
	BITALG                          // counts the bits of lanes of 16
	VNNI                            // sums of products of small integers
)
