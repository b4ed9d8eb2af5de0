package cells

// kernelSets returns the sets that this machine can run, fastest first. Every machine that
// Go runs on has the vectors of the kernel.
func kernelSets() []kernelSet { return []kernelSet{neon, generic} }

func (k kernelSet) scan(found []float32, hits []byte, groups []byte, q *Query, s *scale, next []byte) {
	if k == generic {
		scanGeneric(found, hits, groups, q.planes, s)
		return
	}
	scanNEON(&found[0], &hits[0], &groups[0], len(hits), &q.planes[0], len(q.planes)/4, s, &next[0])
}

//go:noescape
func scanNEON(found *float32, hits *byte, groups *byte, n int, planes *uint64, words int, s *scale, next *byte)
