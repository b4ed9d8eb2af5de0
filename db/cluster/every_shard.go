package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/cluster/internal/plan"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// errParts says that a shard was split before an operation was applied on it. The operation goes to its
// parts.
var errParts = errors.New("the shard has been split")

// onAll applies an operation on every shard, in parallel. If a shard is split first, its parts get the
// operation. The result of each shard goes through done, unless done is nil.
func (c *Client) onAll(ctx context.Context, op func() *wire.Op, done func(error) error) error {
	return c.onAllBefore(ctx, time.Time{}, op, done)
}

// onAllBefore is onAll for operations that must be appended before a time, see doBefore.
func (c *Client) onAllBefore(ctx context.Context, late time.Time, op func() *wire.Op, done func(error) error) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	var on func(l plan.Layout, indexes []int) error
	on = func(l plan.Layout, indexes []int) error {
		errs := make([]error, len(indexes))
		var all sync.WaitGroup
		for i, index := range indexes {
			all.Go(func() {
				err := c.doBefore(ctx, late, func(v *view) (int, error) {
					if v.Layout != l {
						return 0, errParts
					}
					return index, nil
				}, op())
				switch {
				case errors.Is(err, errParts):
					now := c.view.Load().Layout
					err = on(now, l.Parts(index, now))
				case done != nil:
					err = done(err)
				}
				errs[i] = err
			})
		}
		all.Wait()
		return errors.Join(errs...)
	}
	l := c.view.Load().Layout
	return on(l, l.Indexes())
}
