package cells

// A kernelSet is one implementation of scans and products. All of them give the same results. active is
// the fastest one that this machine can run; only tests change it.
type kernelSet uint8

const (
	generic kernelSet = iota
	avx2
	avx512
	neon
)

var active = kernelSets()[0]

func (k kernelSet) String() string {
	return [...]string{"generic", "avx2", "avx512", "neon"}[k]
}
