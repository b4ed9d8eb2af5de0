package main

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// inParallel calls work(0) to work(n-1) on all cores and returns the first error. It
// calls newWork once for each goroutine. So work may have state that goroutines must
// not share.
func inParallel(ctx context.Context, n int, newWork func() (work func(i int) error)) error {
	workers := runtime.GOMAXPROCS(0)
	group, ctx := errgroup.WithContext(ctx)
	for first := range workers {
		group.Go(func() error {
			work := newWork()
			for i := first; i < n; i += workers {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := work(i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
