package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/names"
	"github.com/fddhdb/fddhdb/db/cluster/internal/plan"
	"github.com/fddhdb/fddhdb/db/cluster/internal/route"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// ClientOptions are limits of a client. The zero value means the defaults.
type ClientOptions struct {
	// Timeout is how long a call may take whose context has no deadline; 0 means 30 seconds.
	Timeout time.Duration

	// Pending bounds the writes that are under way: a write beyond it waits. 0 means 256.
	Pending int

	// Node is a node of the cluster in this program, or nil. What it has it is asked without a message, and
	// before other nodes: for a search that is a tenth of a millisecond less, or more. Close the client
	// before it.
	Node *Node
}

// A Client writes to a cluster and searches it. It reads its own writes: what a call has written, every
// call that begins afterwards sees. All methods are safe for concurrent use.
type Client struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	cluster names.Cluster
	plan    *plan.Plan
	router  *route.Router
	logs    []*journal.Journal
	opts    ClientOptions
	pending chan struct{}
	heard   *outcomes

	closing sync.Once

	mu   sync.Mutex
	seen []uint64 // by shard: the sequence that the client has seen the effects of, or has written
}

// Connect connects to a cluster through a connection, which is the caller's: see ConnectNATS. A cluster
// that has not been created is db.ErrNotFound.
func Connect(ctx context.Context, nc *nats.Conn, cluster string, o ClientOptions) (*Client, error) {
	if err := names.Check("cluster", cluster); err != nil {
		return nil, err
	}
	if nc == nil {
		return nil, fmt.Errorf("%w: no connection", db.ErrInvalid)
	}
	if o.Node != nil && o.Node.opts.Cluster != cluster {
		return nil, fmt.Errorf("%w: the node is one of cluster %s, not of %s", db.ErrInvalid, o.Node.opts.Cluster, cluster)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	o.Timeout, o.Pending = cmp.Or(o.Timeout, 30*time.Second), cmp.Or(o.Pending, 256)
	c := &Client{nc: nc, js: js, cluster: names.Cluster(cluster), opts: o, pending: make(chan struct{}, o.Pending)}
	if err := c.open(ctx); err != nil {
		return nil, err
	}
	var local route.Local
	if o.Node != nil {
		local = here{o.Node}
	}
	if c.router, err = route.New(nc, c.cluster, c.plan, local); err != nil {
		c.plan.Close()
		return nil, err
	}
	c.seen = make([]uint64, c.plan.Settings.Shards)
	for shard := range c.plan.Settings.Shards {
		c.logs = append(c.logs, journal.New(js, c.cluster, shard))
	}
	if c.heard, err = listen(nc); err != nil {
		c.router.Close()
		c.plan.Close()
		return nil, err
	}
	return c, nil
}

// open reads the plan. While the servers choose a leader nobody answers, for some seconds: it asks again.
func (c *Client) open(ctx context.Context) (err error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	for {
		c.plan, err = plan.Open(ctx, c.js, c.cluster)
		if err == nil || !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, jetstream.ErrNoStreamResponse) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Shards returns how many shards the cluster has.
func (c *Client) Shards() int { return len(c.logs) }

// Close ends the client. Calls that go on may fail. The connection stays open.
func (c *Client) Close() error {
	c.closing.Do(c.router.Close)
	c.plan.Close()
	return c.heard.close()
}

// Figures are what a client has done since it was connected.
type Figures struct {
	Requests uint64 // asked of nodes
	Hedges   uint64 // asked of a second replica, as the first took long
	Retries  uint64 // asked again, as a node was gone or behind
	Failed   uint64 // that no replica has answered
}

// Figures returns what the client has done.
func (c *Client) Figures() Figures {
	f := &c.router.Figures
	return Figures{f.Requests.Load(), f.Hedges.Load(), f.Retries.Load(), f.Failed.Load()}
}

// within gives a context the deadline of the client, where it has none.
func (c *Client) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, c.opts.Timeout, fmt.Errorf("%w: %v, the timeout of the client", context.DeadlineExceeded, c.opts.Timeout))
}

// sees returns the sequence of the log of a shard up to which this client has read or written. A replica has
// to have applied that much before it answers the client.
func (c *Client) sees(shard int) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[shard]
}

// saw notes that the client has seen, or written, that much of a shard.
func (c *Client) saw(shard int, seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[shard] = max(c.seen[shard], seq)
}

// waitFor is how long a replica may wait, in milliseconds, until it has what the client has seen, before
// another is asked.
const waitFor = 1000

// ask asks a replica of a shard.
func (c *Client) ask(ctx context.Context, shard int, q wire.Request) (*wire.Answer, error) {
	a, err := c.router.Ask(ctx, c.prepare(shard, &q))
	c.learn(shard, &q, a)
	return a, err
}

// prepare completes a request to a shard.
func (c *Client) prepare(shard int, q *wire.Request) *wire.Request {
	q.Shard, q.From, q.Wait = shard, max(q.From, c.sees(shard)), waitFor
	return q
}

// learn notes what an answer shows.
func (c *Client) learn(shard int, q *wire.Request, a *wire.Answer) {
	if a != nil && q.Verb != wire.Digest {
		c.saw(shard, a.Applied)
	}
}
