package cells

import "golang.org/x/sys/cpu"

// kernelSets returns the sets that this machine can run, fastest first.
func kernelSets() []kernelSet {
	sets := []kernelSet{generic}
	x := &cpu.X86
	if x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VPOPCNTDQ {
		sets = append([]kernelSet{avx512}, sets...)
	}
	return sets
}

// A kernel in assembly takes at least one group.

func (k kernelSet) scan(found []float32, hits []byte, groups []byte, q *Query, s *scale, next []byte) {
	if k == generic {
		scanGeneric(found, hits, groups, q.planes, s)
		return
	}
	scanAVX512(&found[0], &hits[0], &groups[0], len(hits), &q.planes[0], len(q.planes)/4, s, &next[0])
}

//go:noescape
func scanAVX512(found *float32, hits *byte, groups *byte, n int, planes *uint64, words int, s *scale, next *byte)
