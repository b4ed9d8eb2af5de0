package cells

import "golang.org/x/sys/cpu"

var hasKernel = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VPOPCNTDQ

// scan is scanGeneric, with the same results.
func scan(found []float32, hits []byte, groups []byte, planes []uint64, s *scale) {
	if !hasKernel || len(hits) == 0 {
		scanGeneric(found, hits, groups, planes, s)
		return
	}
	_, _ = found[len(hits)*lanes-1], groups[len(hits)*groupBytes(len(planes)/4*64)-1]
	scanAVX512(&found[0], &hits[0], &groups[0], len(hits), &planes[0], len(planes)/4, s)
}

//go:noescape
func scanAVX512(found *float32, hits *byte, groups *byte, n int, planes *uint64, words int, s *scale)
