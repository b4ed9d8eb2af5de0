// Package parallel cuts work into parts for goroutines, whose results do not depend on who takes which.
package parallel

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// Workers is the number of goroutines of a computation.
func Workers() int { return runtime.GOMAXPROCS(0) }

// Chunks cuts 0 to n into ranges of at most size, and calls f for each of them, in
// parallel.
func Chunks(workers, n, size int, f func(worker, from, to int)) {
	Do(workers, (n+size-1)/size, func(worker, i int) {
		f(worker, i*size, min((i+1)*size, n))
	})
}

// Do calls f(worker, i) for each i below n, on at most so many goroutines, and
// returns when all calls are done. worker is below workers and tells goroutines apart
// for scratch memory. Which worker gets which i is up to chance: f writes only to
// places that belong to i, so that results do not depend on it.
//
// A panic in f is raised again in the caller's goroutine, where guard turns it into an
// error.
func Do(workers, n int, f func(worker, i int)) {
	workers = min(workers, n)
	if workers <= 1 {
		for i := range n {
			f(0, i)
		}
		return
	}
	var (
		wg     sync.WaitGroup
		next   atomic.Int64
		failed atomic.Pointer[error]
	)
	for w := range workers {
		wg.Go(func() {
			defer func() {
				if r := recover(); r != nil {
					err, ok := r.(error)
					if !ok {
						err = fmt.Errorf("%v", r)
					}
					failed.CompareAndSwap(nil, &err)
				}
			}()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(w, i)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		panic(*err)
	}
}

// Guard turns a panic of gonum (or of this package) into an error, at the border of the
// package. Shapes are checked before every call, so no such panic is expected.
func Guard(err *error, doing string) {
	switch r := recover().(type) {
	case nil:
	case error:
		*err = fmt.Errorf("%s: internal error: %w", doing, r)
	default:
		*err = fmt.Errorf("%s: internal error: %v", doing, r)
	}
}

// Rows is the number of rows that a goroutine takes at a time, of vectors, features or codes. They
// stay in its cache from one product to the next.
const Rows = 64
