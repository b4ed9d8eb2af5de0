package codec

import "math/bits"

// kernels are the Hamming loops that depend on the machine. Each architecture
// may replace the generic set when the program starts; every set gives the same
// results (TestKernelsAgree).
type kernels struct {
	name      string
	distances func(dst []uint16, query, codes []uint64)
}

var active = generic

var generic = kernels{name: "generic", distances: distancesGeneric}

// KernelName names the set of Hamming kernels that this machine runs.
func KernelName() string { return active.name }

// Distance returns the number of bits in which two codes of one length differ.
func Distance(a, b Code) int {
	n := 0
	for i, w := range a {
		n += bits.OnesCount64(w ^ b[i])
	}
	return n
}

// Distances writes to dst[i] the distance between query and the i-th of the
// packed codes; len(codes) must be len(dst)*len(query). It reads every word
// of every code and allocates nothing.
func Distances(dst []uint16, query Code, codes []uint64) {
	active.distances(dst, query, codes)
}

func distancesGeneric(dst []uint16, query, codes []uint64) {
	switch len(query) {
	case 1:
		q0 := query[0]
		codes = codes[:len(dst)]
		for i, w := range codes {
			dst[i] = uint16(bits.OnesCount64(w ^ q0))
		}
	case 2:
		q0, q1 := query[0], query[1]
		codes = codes[:2*len(dst)]
		for i := range dst {
			dst[i] = uint16(bits.OnesCount64(codes[2*i]^q0) + bits.OnesCount64(codes[2*i+1]^q1))
		}
	default:
		for i := range dst {
			code := codes[i*len(query):][:len(query)]
			n := 0
			for j, w := range query {
				n += bits.OnesCount64(w ^ code[j])
			}
			dst[i] = uint16(n)
		}
	}
}
