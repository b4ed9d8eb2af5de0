package work

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// A Task is a part of work that several goroutines share.
type Task func(ctx context.Context) error

// Together runs tasks on so many goroutines, starting them in order, until one fails or
// the context ends. It returns the first error. A task may wait for an earlier one. If
// a task panics Together panics in the caller's goroutine.
func Together(ctx context.Context, workers int, tasks []Task) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var panicked atomic.Pointer[error]
	var next atomic.Int64
	work := func() {
		defer func() {
			if p := recover(); p != nil {
				err := fmt.Errorf("%v\n%s", p, debug.Stack())
				panicked.CompareAndSwap(nil, &err)
				cancel(err)
			}
		}()
		for i := int(next.Add(1)) - 1; i < len(tasks) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
			if err := tasks[i](ctx); err != nil {
				cancel(err)
			}
		}
	}
	var wg sync.WaitGroup
	for range workers - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	if p := panicked.Load(); p != nil {
		panic(*p)
	}
	return context.Cause(ctx)
}
