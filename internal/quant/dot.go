package quant

import (
	"unsafe"

	"github.com/fddhdb/fddhdb/internal/simd"
)

// A dot is what a kernel finds for a vector v and a query q.
type dot struct {
	product int32 // sum of q[i]*v[i]
	square  int32 // sum of v[i]*v[i]
}

// The kernel of dots exists for each set of instructions. All give the same results. active is
// the fastest set that this machine can run; only tests change it.
var (
	sets   = simd.Sets(simd.VNNI)
	active = sets[0]
)

// dots fills in a dot for each of the first len(dst) vectors. A vector is a pointer to the first of
// len(query) numbers, which is a multiple of eight. Those beyond len(dst) come next: they are only
// fetched. So is the beginning of each vector, span bytes, some vectors before it is compared. The
// query is such that no product exceeds 32 bits, see NewQuery; squares cannot, up to MaxDims
// dimensions.
func dots(dst []dot, query []int16, vectors []*int8, span int) {
	if len(dst) > 0 {
		dotsBy(active, dst, query, vectors, span)
	}
}

const cacheLine = 64 // bytes

// ahead is how many vectors before it is compared a vector is fetched, as kernels have it.
const ahead = 16

func dotsGeneric(dst []dot, query []int16, vectors []*int8) {
	for i, p := range vectors[:len(dst)] {
		v := unsafe.Slice(p, len(query))
		var product, square int32
		for j, q := range query {
			x := int32(v[j])
			product += int32(q) * x
			square += x * x
		}
		dst[i] = dot{product, square}
	}
}
