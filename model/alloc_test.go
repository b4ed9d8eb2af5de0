package model

import (
	"runtime"
	"testing"
)

// allocated returns the bytes that have ever been allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// bounded fails if reading bytes of any origin allocates more than 64 MiB, which packed
// anchors may take, and 64 times the input, garbage included.
func bounded(t *testing.T, input int, f func()) {
	t.Helper()
	before := allocated()
	f()
	n := allocated() - before
	failIf(t, n > uint64(64<<20+64*input), "%d bytes allocated for %d bytes of input", n, input)
}
