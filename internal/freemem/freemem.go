// Package freemem says how much memory a process can still take, so that work that needs more
// is refused before it begins, instead of being killed by the kernel in the middle.
package freemem

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
)

// Available returns about how many bytes this process can still allocate: the least of what
// the machine has left, what the limits of the process and of its control groups leave
// (Linux), and what the soft limit of the Go runtime does (GOMEMLIMIT,
// debug.SetMemoryLimit). On Windows the first and the last are known, on macOS the whole
// memory stands for what is left of it. known is false where nothing limits it that could be
// found out. It reads a few small files; goroutines may call it at any time.
func Available() (bytes int64, known bool) {
	least := int64(math.MaxInt64)
	if n, ok := system(); ok {
		least = n
	}
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	total, released, free := int64(samples[0].Value.Uint64()), int64(samples[1].Value.Uint64()), int64(samples[2].Value.Uint64())
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		least = min(least, limit-(total-released))
	}
	if least == math.MaxInt64 {
		return 0, false
	}
	// What the heap holds and does not use is there, too.
	return max(least, 0) + free, true
}
