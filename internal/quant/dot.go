package quant

import "unsafe"

// A dot is what a kernel finds for a vector v and a query q.
type dot struct {
	product int32 // sum of q[i]*v[i]
	square  int32 // sum of v[i]*v[i]
}

// A kernelSet is one implementation of dots. All of them give the same results. active is
// the fastest one that this machine can run; only tests change it.
type kernelSet uint8

const (
	generic kernelSet = iota
	avx2
	avx512
	neon
)

var active = kernelSets()[0]

func (k kernelSet) String() string {
	return [...]string{"generic", "avx2", "avx512", "neon"}[k]
}

// dots fills in a dot for each vector. A vector is a pointer to the first of len(query)
// numbers, which is a multiple of eight. dst has room for all. The query is such that no
// product exceeds 32 bits, see NewQuery; squares cannot, up to MaxDims dimensions.
func dots(dst []dot, query []int16, vectors []*int8) {
	if len(vectors) > 0 {
		active.dots(dst[:len(vectors)], query, vectors)
	}
}

func dotsGeneric(dst []dot, query []int16, vectors []*int8) {
	for i, p := range vectors {
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
