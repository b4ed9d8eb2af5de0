package work

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Parallel calls f with 0 to n-1 on all cores, until a call fails or the context ends.
// It returns the first error. For a small n it uses only the caller's goroutine.
func Parallel(ctx context.Context, n int, f func(i int) error) error {
	return ParallelBy(ctx, All(), 64, n, f)
}

// All returns the number of goroutines for work that a caller waits for.
func All() int { return runtime.GOMAXPROCS(0) }

// Background returns the number of goroutines for work in the background. It leaves
// half of the processors, or one of two, to searches.
func Background() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// ParallelBy is Parallel on at most workers goroutines. A goroutine makes run calls in
// a row between two checks of the context.
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
