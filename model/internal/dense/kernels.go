package dense

import (
	"unsafe"

	"github.com/fddhdb/fddhdb/internal/simd"
)

// The inner loops exist for each set of instructions. active is the fastest set that this
// machine can run. Only tests change it.
var (
	sets   = simd.Sets(simd.None)
	active = sets[0]
)

// Every set computes tiles of tileRows rows, and of as many columns as fit into
// panelBytes: 48 float32 or 24 float64. That is 8x3 registers of 512 bits, as many as
// the machine with the most registers holds. Machines with fewer go over a tile in
// parts. One size for all of them gives one layout of packed matrices.
const (
	tileRows   = 8
	panelBytes = 192
)

// panelWidth returns the number of columns of a tile.
func panelWidth[T Float]() int { return panelBytes / size[T]() }

func size[T Float]() int {
	var v T
	return int(unsafe.Sizeof(v))
}

// deepest is the largest depth of a set.
const deepest = 256

// depth returns how many columns of a and rows of b the tiles cover at a time. It
// decides what is in the caches, and nothing else. A kernel that goes over the panel of
// b in parts needs the panel in the first cache; other kernels stream it.
func depthBy(k simd.Set) int {
	if k == simd.AVX512 {
		return deepest
	}
	return 128
}

// A tile is the work of one call of the kernel of products:
//
//	c[i][j] += a[i][0] b[0][j] + a[i][1] b[1][j] + ... + a[i][n-1] b[n-1][j]
//
// in this order, for tileRows rows i and a panel of columns j. Each addition is fused
// with its multiplication. If first is set c is taken to be 0. All distances are in
// bytes. Numbers of one row of b or c follow one another.
type tile struct {
	n        int            // columns of a and rows of b
	a        unsafe.Pointer // first number of a
	row, col int            // from a[i][p] to a[i+1][p] and to a[i][p+1]
	b        unsafe.Pointer // first number of b: a packed panel
	c        unsafe.Pointer // first number of c
	stride   int            // from c[i][j] to c[i+1][j]
	first    bool           // c is written, not added to
}
