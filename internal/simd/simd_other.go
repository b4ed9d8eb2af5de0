//go:build !amd64 && !arm64

package simd

// Sets returns the sets that this machine can run, the fastest first.
func Sets(Extension) []Set { return []Set{Generic} }
