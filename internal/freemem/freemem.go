package freemem

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
)

// Available returns about how many bytes this process can still allocate. That is the
// least of three amounts: the free memory of the machine, the rest of the limits of the
// process and of its control groups (Linux), and the rest of the soft limit of the Go
// runtime (GOMEMLIMIT, debug.SetMemoryLimit). On Windows it knows the first and the
// last. On macOS the whole memory of the machine stands for the first. known is false
// if it finds no limit. It reads a few small files; goroutines may call it at any time.
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
	total, released, free := int64(samples[0].Value.Uint64()), int64(samples[1].Value.Uint64()),
		int64(samples[2].Value.Uint64())
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		least = min(least, limit-(total-released))
	}
	if least == math.MaxInt64 {
		return 0, false
	}
	// Free memory within the heap can be allocated, too.
	return max(least, 0) + free, true
}
