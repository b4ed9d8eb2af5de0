//go:build !amd64 && !arm64

package cells

func kernelSets() []kernelSet { return []kernelSet{generic} }

func (kernelSet) scan(found []float32, hits []byte, groups []byte, q *Query, s *scale, _ []byte) {
	scanGeneric(found, hits, groups, q.planes, s)
}

func (kernelSet) product(x, y []float32) float32 { return productGeneric(x, y) }
