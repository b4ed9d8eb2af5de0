//go:build !amd64 && !arm64

package codec

// kernelSets returns the sets that this machine can run, fastest first.
func kernelSets() []kernelSet { return []kernelSet{generic} }

func (kernelSet) distances(dst []uint16, query, codes []uint64) {
	distancesGeneric(dst, query, codes)
}

func (kernelSet) within(dst []Near, query, codes []uint64, r int, base uint32) int {
	return withinGeneric(dst, query, codes, r, base)
}

func (kernelSet) withinAt(dst []Near, query, codes []uint64, at []uint32, n, r int) int {
	return withinAtGeneric(dst, query, codes, at, n, r)
}

func (kernelSet) withinRanges(dst []Near, query, codes []uint64, from, to []uint32, n, r int) int {
	return withinRangesGeneric(dst, query, codes, from, to, n, r)
}

func (kernelSet) partners(dst []uint32, query uint16, values []uint16, from, to []uint32, least, most int) int {
	return partnersGeneric(dst, query, values, from, to, least, most)
}
