//go:build !amd64

package cells

func scan(found []float32, hits []byte, groups []byte, planes []uint64, s *scale) {
	scanGeneric(found, hits, groups, planes, s)
}
