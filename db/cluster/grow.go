package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/plan"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// GrowOptions are the options of Client.Grow. The zero value will do.
type GrowOptions struct {
	// Progress, unless nil, hears the stages below, in shards, from one goroutine at a time.
	Progress event.Progress
}

// The stages of a growth, in order.
const (
	GrowBegin  = "beginning"   // each shard is backed up, and its parts start from the backup
	GrowCopy   = "catching up" // the parts receive the writes made meanwhile
	GrowClose  = "closing"     // writes wait from now on
	GrowSwitch = "switching"   // the parts have everything and take over
	GrowRemove = "removing"    // writes go on; the logs of the split shards are removed
)

// Grow doubles the number of shards while the cluster serves: each shard is split into two parts, on the
// nodes that have it. Growing needs a place for backups (NodeOptions.Backups), twice the disk and memory
// while it runs, and servers with room for the logs of the parts.
//
// Searches and writes go on. At the end writes wait briefly, until the parts have everything that was
// acknowledged. If Grow is interrupted, call it again; it continues. If the logs were already closed, writes
// wait until then. One growth runs at a time; another is db.ErrBusy.
//
// When the parts take over, a running training fails, and older cursors are refused. Make backups afterwards:
// until then a restored cluster would have the shards from before the growth.
func (c *Client) Grow(ctx context.Context, o GrowOptions) error {
	ctx, ended := work.Hearing(ctx, &o.Progress)
	defer ended()
	lease, err := c.take(ctx, "lease.grow")
	if err != nil {
		return fmt.Errorf("growth of cluster %s: %w", c.cluster, err)
	}
	defer lease.end(c)
	if err = c.grow(lease, o); err != nil && ctx.Err() == nil && lease.ctx.Err() != nil {
		err = fmt.Errorf("%w: the servers have not renewed the lease: call it again", err)
	}
	if err != nil {
		return fmt.Errorf("growth of cluster %s: %w", c.cluster, err)
	}
	return nil
}

func (c *Client) grow(l *lease, o GrowOptions) error {
	ctx := l.ctx
	var claim *plan.Claim
	err := again(ctx, func(ctx context.Context) (err error) {
		claim, err = c.plan.Claim(ctx, l.number) // and read how far the last holder has come
		return err
	})
	if err != nil {
		return err
	}
	js, err := jetstream.New(c.nc, jetstream.WithPublishAsyncMaxPending(1<<16))
	if err != nil {
		return err
	}
	g := &growth{client: c, claim: claim, js: js, options: o}
	g.from, _, _ = c.plan.Layout()
	g.to = g.from.Next()
	// an earlier Grow was interrupted here
	if slices.ContainsFunc(c.plan.Shards(), func(s int) bool { return s < g.from.First }) {
		return g.remove(ctx, g.from)
	}
	if g.from.Shards > mostToGrow {
		return fmt.Errorf("%w: it has %d shards, and grows from %d at most", db.ErrInvalid, g.from.Shards,
			mostToGrow)
	}
	var parts []int
	for _, index := range g.to.Indexes() {
		parts = append(parts, g.to.Number(index))
	}
	if err := again(ctx, func(ctx context.Context) error { return c.plan.Room(ctx, parts) }); err != nil {
		return err
	}
	for _, index := range g.from.Indexes() {
		g.splits = append(g.splits, g.split(index))
	}
	if err := g.each(func(s *split) error { return s.vacant(ctx) }); err != nil {
		return err
	}
	if err := g.each(func(s *split) error { return s.take(ctx) }); err != nil {
		return err
	}
	if err := g.carryOut(ctx); err != nil {
		return err
	}
	// so that the caller sees the new layout
	for v := c.view.Load(); v.First < g.to.First; v = c.view.Load() {
		if err := c.next(ctx, v); err != nil {
			return err
		}
	}
	return g.remove(ctx, g.to)
}

// mostToGrow bounds the shards of a cluster before growth. While it grows the plan has three times as many
// shards, and servers list at most 1,024 of its keys in an answer.
const mostToGrow = 340

// A growth is a run of Grow.
type growth struct {
	client   *Client
	claim    *plan.Claim
	js       jetstream.JetStream // with room for many messages in flight
	options  GrowOptions
	from, to plan.Layout
	splits   []*split   // by index of from
	backing  sync.Mutex // one backup at a time
	begun    atomic.Int64
	telling  sync.Mutex
}

func (g *growth) progress(stage string, done, of int) {
	g.telling.Lock()
	defer g.telling.Unlock()
	if g.options.Progress != nil {
		g.options.Progress(stage, int64(done), int64(of))
	}
}

// carryOut splits all shards, until the parts have taken over.
func (g *growth) carryOut(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel(nil)
	g.progress(GrowBegin, 0, len(g.splits))
	for _, s := range g.splits {
		running.Go(func() {
			if err := s.run(ctx); err != nil {
				cancel(fmt.Errorf("shard %d: %w", s.number, err))
			}
		})
	}
	err := g.nearly(ctx)
	if err == nil {
		g.progress(GrowClose, 0, len(g.splits))
		err = g.each(func(s *split) error { return s.close(ctx) })
	}
	if err == nil {
		err = g.each(func(s *split) error { return s.wait(ctx) })
	}
	if err == nil {
		err = g.whole(ctx)
	}
	if err == nil {
		g.progress(GrowSwitch, 0, len(g.splits))
		grown := plan.Grown{Layout: g.to, Starts: make([]uint64, g.to.Shards)}
		for i := range grown.Starts {
			grown.Starts[i] = g.splits[i%len(g.splits)].end() + 1
		}
		err = again(ctx, func(ctx context.Context) error { return g.claim.Grow(ctx, grown) })
	}
	if err != nil && errors.Is(err, context.Canceled) {
		err = cmp.Or(context.Cause(ctx), err) // the error of the shard that canceled the others
	}
	return err
}

// each calls f for all splits, in parallel.
func (g *growth) each(f func(s *split) error) error {
	errs := make([]error, len(g.splits))
	var all sync.WaitGroup
	for i, s := range g.splits {
		all.Go(func() { errs[i] = f(s) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Logs are closed when no part lacks more than nearlyMessages of its shard.
const (
	nearlyMessages = 200
	nearlyEvery    = 50 * time.Millisecond
)

// nearly waits until the parts have almost everything, on all nodes that answer, and on one at least.
func (g *growth) nearly(ctx context.Context) error {
	told := -1
	for {
		done, why, err := g.caughtUp(ctx)
		if err != nil {
			return err
		}
		if done != told {
			g.progress(GrowCopy, done, len(g.splits))
			told = done
		}
		if done == len(g.splits) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", context.Cause(ctx), why)
		case <-time.After(nearlyEvery):
		}
	}
}

// caughtUp returns the number of shards whose parts lack almost nothing, and why another shard is not ready.
func (g *growth) caughtUp(ctx context.Context) (done int, why string, err error) {
	nodes, err := g.client.Nodes(ctx)
	if err != nil {
		return 0, "", err
	}
	whys := make([]string, len(g.splits))
	err = g.each(func(s *split) error {
		whys[s.index] = s.lacks(ctx, nodes)
		return nil
	})
	for _, w := range whys {
		if w == "" {
			done++
		} else {
			why = w
		}
	}
	return done, why, err
}

// While writes wait, parts get wholeIn to catch up. Parts that restart from a backup get restartIn.
var (
	wholeIn   = 30 * time.Second
	restartIn = 10 * time.Minute
)

// whole ensures that a replica of each part has everything. Incomplete parts restart once from a backup of
// their shard, which is closed by now.
func (g *growth) whole(ctx context.Context) error {
	bad, err := g.check(ctx, wholeIn)
	if len(bad) == 0 {
		return err
	}
	for _, s := range bad {
		if err := s.anew(ctx); err != nil {
			return fmt.Errorf("shard %d: %w", s.number, err)
		}
	}
	_, err = g.check(ctx, restartIn)
	return err
}

// check waits, up to in, until a replica of each part has everything, and compares the numbers of items:
// incomplete parts do not take over. It returns the shards with incomplete parts, and an error with the
// reasons. Without such shards an error has another cause.
func (g *growth) check(ctx context.Context, in time.Duration) (bad []*split, err error) {
	why := make([]error, len(g.splits))
	err = g.each(func(s *split) (err error) {
		why[s.index], err = s.whole(ctx, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, w := range why {
		if w != nil {
			bad = append(bad, g.splits[i])
		}
	}
	if len(bad) == 0 {
		return nil, nil
	}
	nodes, err := g.client.Nodes(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	errs := []error{err}
	for _, s := range bad {
		errs = append(errs, fmt.Errorf("%w%s", why[s.index], s.problems(nodes)))
	}
	return bad, errors.Join(errs...)
}

// remove removes the logs and the placements of all shards older than a layout.
func (g *growth) remove(ctx context.Context, l plan.Layout) error {
	var old []int
	for _, s := range g.client.plan.Shards() {
		if s < l.First {
			old = append(old, s)
		}
	}
	g.progress(GrowRemove, 0, len(old))
	errs := make([]error, len(old))
	var all sync.WaitGroup
	for i, number := range old {
		all.Go(func() {
			// the placement goes last: it says that there is something to remove
			if errs[i] = again(ctx, g.log(number).Delete); errs[i] == nil {
				errs[i] = again(ctx, func(ctx context.Context) error { return g.claim.Remove(ctx, number) })
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the cluster has grown to %d shards, and not all of those before are removed: call it again: %w", l.Shards, err)
	}
	g.progress(GrowRemove, len(old), len(old))
	g.client.plan.Refresh()
	return nil
}

// Growing returns the number of shards after a growth that is running or was interrupted; 0 if there is none.
func (c *Client) Growing() int {
	l := c.view.Load().Layout
	if next := l.Next(); slices.ContainsFunc(c.plan.Shards(), next.Has) {
		return next.Shards
	}
	return 0
}
