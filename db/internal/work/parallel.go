package work

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Parallel calls f with 0 to n-1 on all cores, until a call fails or the context ends.
// It returns the first error. It is ParallelBy with runs of 64: up to 64 calls are made in
// the caller's goroutine alone, so that cheap calls do not pay for goroutines.
func Parallel(ctx context.Context, n int, f func(i int) error) error {
	return ParallelBy(ctx, All(), 64, n, f)
}

// All returns the number of goroutines for work that a caller waits for.
func All() int { return runtime.GOMAXPROCS(0) }

// Background returns the number of goroutines for work in the background. It leaves
// half of the processors, or one of two, to searches.
func Background() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// ParallelBy is Parallel on at most workers goroutines, of which the caller's is one. A
// goroutine takes run numbers at a time, ascending, and checks the context before each run;
// so a call gets larger numbers than the calls before it on the same goroutine. run is 1 or
// more. Other goroutines finish their runs when a call fails. If the context ends the error
// is ctx.Err; a panic of f is an error, too.
func ParallelBy(ctx context.Context, workers, run, n int, f func(i int) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	workers = min(workers, (n+run-1)/run)
	var next atomic.Int64
	var failed atomic.Bool
	var first error
	var once sync.Once
	take := func() error {
		for !failed.Load() {
			from := int(next.Add(int64(run))) - run
			if from >= n {
				return nil
			}
			err := ctx.Err()
			for i := from; err == nil && i < min(from+run, n); i++ {
				err = f(i)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	work := func() {
		if err := Safely(take); err != nil {
			once.Do(func() { first = err })
			failed.Store(true)
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
