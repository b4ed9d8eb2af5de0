package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/plan"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/shard"
)

// A view is the shards as a client uses them, by index. It is over when the cluster has grown: calls in it
// end, and are repeated in the next view.
type view struct {
	plan.Layout
	client *Client
	logs   []*journal.Journal
	ctx    context.Context // ends when the view is over
	over   context.CancelCauseFunc

	mu   sync.Mutex
	seen []uint64 // by shard: the sequence that the client has read or written
}

// errGrown says that the cluster has grown during an operation.
var errGrown = errors.New("the cluster has grown meanwhile")

// newView returns the view of a layout. The client has seen the logs up to starts; nil: nothing.
func (c *Client) newView(l plan.Layout, starts []uint64) *view {
	v := &view{Layout: l, client: c, seen: make([]uint64, l.Shards)}
	copy(v.seen, starts)
	for i := range l.Shards {
		v.logs = append(v.logs, journal.New(c.js, c.cluster, l.Number(i)))
	}
	v.ctx, v.over = context.WithCancelCause(context.Background())
	return v
}

// follow replaces the view when the cluster has grown.
func (c *Client) follow(ctx context.Context) {
	for {
		layout, starts, changed := c.plan.Layout()
		if v := c.view.Load(); layout.First > v.First {
			c.view.Store(c.newView(layout, starts))
			v.over(errGrown)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// next waits for the view after one whose shards are being split.
func (c *Client) next(ctx context.Context, v *view) error {
	for {
		c.plan.Refresh()
		select {
		case <-v.ctx.Done():
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// isOver reports whether there is a later view.
func (v *view) isOver() bool { return v.ctx.Err() != nil }

// within returns a context that also ends when the view is over.
func (v *view) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(v.ctx, func() { cancel(errGrown) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// steady calls f with the view. If the cluster grows and f fails, steady calls it again with the next view.
func (c *Client) steady(ctx context.Context, f func(ctx context.Context, v *view) error) error {
	for {
		v := c.view.Load()
		in, cancel := v.within(ctx)
		err := f(in, v)
		cancel()
		switch {
		case err == nil || !v.isOver():
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// of returns the index of the shard with a key.
func (v *view) of(key string) int { return shard.Of(key, v.Shards) }

// sees returns the sequence up to which this client has read or written the log of a shard. A replica must
// have applied that much before it answers the client.
func (v *view) sees(index int) uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen[index]
}

// saw notes that the client has read or written a shard up to a sequence.
func (v *view) saw(index int, seq uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen[index] = max(v.seen[index], seq)
}

// waitFor is how long, in milliseconds, a replica may wait to catch up with the client before another is
// asked.
const waitFor = 1000

// ask asks a replica of a shard.
func (v *view) ask(ctx context.Context, index int, q wire.Request) (*wire.Answer, error) {
	a, err := v.client.router.Ask(ctx, v.prepare(index, &q))
	v.learn(index, &q, a)
	return a, err
}

// prepare completes a request to a shard.
func (v *view) prepare(index int, q *wire.Request) *wire.Request {
	q.Shard, q.From, q.Wait = v.Number(index), max(q.From, v.sees(index)), waitFor
	return q
}

// learn notes how far the answering replica has applied its log.
func (v *view) learn(index int, q *wire.Request, a *wire.Answer) {
	if a != nil && q.Verb != wire.Digest {
		v.saw(index, a.Applied)
	}
}
