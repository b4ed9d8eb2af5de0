package quant

import "golang.org/x/sys/cpu"

// kernelSets returns the sets that this machine can run, fastest first.
func kernelSets() []kernelSet {
	sets := []kernelSet{generic}
	x := &cpu.X86
	if x.HasAVX2 && x.HasBMI2 {
		sets = append([]kernelSet{avx2}, sets...)
		if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512VNNI {
			sets = append([]kernelSet{avx512}, sets...)
		}
	}
	return sets
}

// A kernel in assembly takes at least one vector.

func (k kernelSet) dots(dst []dot, query []int16, vectors []*int8, span int) {
	switch k {
	case avx512:
		dotsAVX512(&dst[0], &query[0], len(query), &vectors[0], len(dst), len(vectors), span)
	case avx2:
		dotsAVX2(&dst[0], &query[0], len(query), &vectors[0], len(dst), len(vectors), span)
	default:
		dotsGeneric(dst, query, vectors)
	}
}

//go:noescape
func dotsAVX512(dst *dot, query *int16, dims int, vectors **int8, n, known, span int)

//go:noescape
func dotsAVX2(dst *dot, query *int16, dims int, vectors **int8, n, known, span int)
