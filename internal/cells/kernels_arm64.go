package cells

// kernelSets returns the sets that this machine can run, fastest first. Every machine that
// Go runs on has the vectors of the kernels.
func kernelSets() []kernelSet { return []kernelSet{neon, generic} }

func (k kernelSet) scan(found []float32, hits []byte, groups []byte, q *Query, s *scale, next []byte) {
	if k == generic {
		scanGeneric(found, hits, groups, q.planes, s)
		return
	}
	scanNEON(&found[0], &hits[0], &groups[0], len(hits), &q.planes[0], len(q.planes)/4, s, &next[0])
}

func (k kernelSet) product(x, y []float32) float32 {
	if k == generic {
		return productGeneric(x, y)
	}
	return productNEON(&x[0], &y[0], len(x))
}

//go:noescape
func scanNEON(found *float32, hits *byte, groups *byte, n int, planes *uint64, words int, s *scale, next *byte)

//go:noescape
func productNEON(x, y *float32, n int) float32
