//go:build !amd64 && !arm64

package quant

func kernelSets() []kernelSet { return []kernelSet{generic} }

func (kernelSet) dots(dst []dot, query []int16, vectors []*int8, _ int) {
	dotsGeneric(dst, query, vectors)
}
