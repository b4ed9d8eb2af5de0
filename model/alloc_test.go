package model

import (
	"runtime"
	"testing"
)

// allocated is what has ever been allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// bounded fails if reading bytes from a stranger allocates more than 64 MiB, which packed anchors may take, and 64
// times what they are, garbage included.
func bounded(t *testing.T, input int, f func()) {
	t.Helper()
	before := allocated()
	f()
	if n := allocated() - before; n > uint64(64<<20+64*input) {
		t.Errorf("%d bytes allocated for %d bytes of input", n, input)
	}
}
