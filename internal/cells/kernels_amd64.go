package cells

import "golang.org/x/sys/cpu"

// kernelSets returns the sets that this machine can run, fastest first.
func kernelSets() []kernelSet {
	sets := []kernelSet{generic}
	x := &cpu.X86
	if x.HasAVX2 {
		sets = append([]kernelSet{avx2}, sets...)
		if x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VPOPCNTDQ {
			sets = append([]kernelSet{avx512}, sets...)
		}
	}
	return sets
}

// A kernel in assembly takes at least one group, or 32 coordinates.

func (k kernelSet) scan(found []float32, hits []byte, groups []byte, q *Query, s *scale, next []byte) {
	words := len(q.planes) / 4
	switch k {
	case avx512:
		scanAVX512(&found[0], &hits[0], &groups[0], len(hits), &q.planes[0], words, s, &next[0])
	case avx2:
		scanAVX2(&found[0], &hits[0], &groups[0], len(hits), &q.tables[0], words, s, &next[0])
	default:
		scanGeneric(found, hits, groups, q.planes, s)
	}
}

// Both sets have one kernel of products, which takes as long as its numbers take to load.
func (k kernelSet) product(x, y []float32) float32 {
	if k == generic {
		return productGeneric(x, y)
	}
	return productAVX2(&x[0], &y[0], len(x))
}

//go:noescape
func scanAVX512(found *float32, hits *byte, groups *byte, n int, planes *uint64, words int, s *scale, next *byte)

//go:noescape
func scanAVX2(found *float32, hits *byte, groups *byte, n int, tables *uint64, words int, s *scale, next *byte)

//go:noescape
func productAVX2(x, y *float32, n int) float32
