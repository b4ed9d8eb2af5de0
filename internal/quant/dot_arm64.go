package quant

// kernelSets returns the sets that this machine can run, fastest first. Every machine that
// Go runs on has the vectors of the kernel.
func kernelSets() []kernelSet { return []kernelSet{neon, generic} }

func (k kernelSet) dots(dst []dot, query []int16, vectors []*int8, span int) {
	if k == generic {
		dotsGeneric(dst, query, vectors)
		return
	}
	dotsNEON(&dst[0], &query[0], len(query), &vectors[0], len(dst), len(vectors), span)
}

//go:noescape
func dotsNEON(dst *dot, query *int16, dims int, vectors **int8, n, known, span int)
