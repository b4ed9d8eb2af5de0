package backup

import (
	"context"
	"iter"
	"sync"
)

// parallel runs tasks on n goroutines until one fails or the context ends. It returns
// the first error.
func parallel(ctx context.Context, n int, tasks iter.Seq[func(context.Context) error]) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan func(context.Context) error)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for do := range queue {
				if ctx.Err() != nil {
					continue
				}
				if err := do(ctx); err != nil {
					cancel(err)
				}
			}
		})
	}
	for do := range tasks {
		if ctx.Err() != nil {
			break
		}
		queue <- do
	}
	close(queue)
	wg.Wait()
	return context.Cause(ctx)
}
