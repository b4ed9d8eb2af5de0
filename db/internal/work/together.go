package work

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// A Task is a part of work that several goroutines share. ctx ends when another part fails:
// a task that waits, or takes long, has to look at it.
type Task func(ctx context.Context) error

// Together runs tasks on at most workers goroutines, of which the caller's is one, until one fails
// or the context ends. It starts them in order. So a task may wait for an earlier one, which
// has ended or is running, however few goroutines there are. It returns the first error, or
// the cause of the end of the context, when no task runs any more. If a task panics Together
// panics in the caller's goroutine, with an error that has the stack of the task.
func Together(ctx context.Context, workers int, tasks []Task) error {
	workers = min(workers, len(tasks))
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
