package work

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Parallel calls f with 0 to n-1 on all cores, or on the caller's alone where n
// is small, until one call fails or the context ends; it returns the first error.
func Parallel(ctx context.Context, n int, f func(i int) error) error {
	return ParallelBy(ctx, All(), 64, n, f)
}

// All is how many goroutines work on what somebody waits for.
func All() int { return runtime.GOMAXPROCS(0) }

// Background is how many goroutines work in the background, so that half of the
// processors, or one of two, are there for searches.
func Background() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// ParallelBy is Parallel on so many goroutines, for calls of which one makes run, one
// after the other, between two looks at the context.
func ParallelBy(ctx context.Context, workers, run, n int, f func(i int) error) error {
	workers = min(workers, (n+run-1)/run)
	var next atomic.Int64
	var failed atomic.Bool
	var first error
	var once sync.Once
	work := func() {
		for !failed.Load() {
			from := int(next.Add(int64(run))) - run
			if from >= n {
				return
			}
			err := ctx.Err()
			for i := from; err == nil && i < min(from+run, n); i++ {
				err = f(i)
			}
			if err != nil {
				once.Do(func() { first = err })
				failed.Store(true)
			}
		}
	}
	var wg sync.WaitGroup
	for range workers - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	return first
}
