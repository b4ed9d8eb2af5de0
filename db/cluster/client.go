package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/names"
	"github.com/fddhdb/fddhdb/db/cluster/internal/plan"
	"github.com/fddhdb/fddhdb/db/cluster/internal/route"
)

// ClientOptions are limits of a client. The zero value means the defaults.
type ClientOptions struct {
	// Timeout bounds a call whose context has no deadline; 0 means 30 seconds.
	Timeout time.Duration

	// Pending bounds the writes in flight; further writes wait. 0 means 256.
	Pending int

	// Node is a node of the cluster in this program, or nil. The client asks it first for the shards it has,
	// without a message: a search is at least 0.1 ms faster. Close the client before the node.
	Node *Node
}

// A Client writes to a cluster and searches it. It reads its own writes: a call sees all writes of calls that
// ended before it began. All methods are safe for concurrent use.
type Client struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	cluster names.Cluster
	plan    *plan.Plan
	router  *route.Router
	opts    ClientOptions
	pending chan struct{}
	heard   *outcomes

	view    atomic.Pointer[view]
	closing sync.Once
	stop    context.CancelFunc // ends following the layout
	done    sync.WaitGroup
}

// Connect connects to a cluster through a connection that the caller owns: see ConnectNATS. An unknown
// cluster is db.ErrNotFound.
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
	layout, _, _ := c.plan.Layout()
	c.view.Store(c.newView(layout, nil))
	if c.heard, err = listen(nc); err != nil {
		c.router.Close()
		c.plan.Close()
		return nil, err
	}
	var following context.Context
	following, c.stop = context.WithCancel(context.Background())
	c.done.Go(func() { c.follow(following) })
	return c, nil
}

// open reads the plan. It retries while no server answers: choosing a leader takes some seconds.
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

// Shards returns the number of shards. Grow doubles it.
func (c *Client) Shards() int { return c.view.Load().Shards }

// Close ends the client. Calls in progress may fail. The connection stays open. A second Close is
// db.ErrClosed.
func (c *Client) Close() error {
	err := db.ErrClosed
	c.closing.Do(func() {
		c.router.Close()
		c.stop()
		c.done.Wait()
		c.plan.Close()
		err = c.heard.close()
	})
	return err
}

// Figures count the requests of a client since it connected.
type Figures struct {
	Requests uint64 // requests to nodes
	Hedges   uint64 // requests to a second replica because the first was slow
	Retries  uint64 // requests repeated because a node was gone or behind
	Failed   uint64 // requests that no replica answered
}

// Figures returns the figures of the client.
func (c *Client) Figures() Figures {
	f := &c.router.Figures
	return Figures{f.Requests.Load(), f.Hedges.Load(), f.Retries.Load(), f.Failed.Load()}
}

// within gives a context without a deadline the timeout of the client.
func (c *Client) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, c.opts.Timeout, fmt.Errorf("%w: %v, the timeout of the client", context.DeadlineExceeded, c.opts.Timeout))
}
