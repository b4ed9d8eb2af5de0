// Package route brings a request to a replica of a shard, and its answer back.
//
// NATS reports a node that is gone at once, and the next node is asked. A slow or stopped node is silent:
// after the time that nineteen of twenty answers take, a second replica is asked as well, and the first
// answer counts. Requests only read, so answering one twice does no harm.
package route

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fddhdb/fddhdb/db/cluster/internal/names"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// A Places knows the nodes of each shard.
type Places interface {
	Nodes(shard int) []string
	Refresh() // a node lacks a shard that Nodes gives it
}

// A Local is a node in this program: it is asked first, and without a message.
type Local interface {
	Name() string

	// Ask calls answered with the node's answer, in another goroutine.
	Ask(ctx context.Context, q *wire.Request, answered func(*wire.Answer))
}

// A Router sends requests. Its methods may be called from any goroutine.
type Router struct {
	nc      *nats.Conn
	cluster names.Cluster
	places  Places
	local   Local // or nil
	inbox   *inbox
	next    atomic.Uint64
	times   times

	mu       sync.Mutex
	suspects map[string]time.Time // until when a node is asked last
	lost     chan struct{}        // closed when the connection to the server is lost, and then replaced
	closed   chan struct{}        // by Close

	Figures Figures
}

// Figures count the requests of a Router.
type Figures struct {
	Requests atomic.Uint64 // requests made
	Hedges   atomic.Uint64 // requests to a second replica because the first was slow
	Retries  atomic.Uint64 // requests repeated because a node was gone or behind
	Failed   atomic.Uint64 // requests that ended without an answer
}

// New returns a router that asks through a connection, and asks a node in this program unless local is nil.
// Close it.
func New(nc *nats.Conn, cluster names.Cluster, places Places, local Local) (*Router, error) {
	inbox, err := openInbox(nc)
	if err != nil {
		return nil, err
	}
	r := &Router{
		nc: nc, cluster: cluster, places: places, local: local, inbox: inbox,
		suspects: map[string]time.Time{}, lost: make(chan struct{}), closed: make(chan struct{}),
	}
	go r.listen(nc.StatusChanged(nats.RECONNECTING, nats.CLOSED))
	return r, nil
}

// listen notices when the connection is lost: requests in flight get no answer through it.
func (r *Router) listen(changed chan nats.Status) {
	defer r.nc.RemoveStatusListener(changed)
	for {
		select {
		case <-r.closed:
			return
		case status := <-changed:
			r.mu.Lock()
			close(r.lost)
			r.lost = make(chan struct{})
			r.mu.Unlock()
			if status != nats.RECONNECTING { // it is closed for good
				return
			}
		}
	}
}

// Close ends the router. Requests in progress get no answers.
func (r *Router) Close() {
	close(r.closed)
	_ = r.inbox.sub.Unsubscribe() // the error would say that the connection is closed
}

// connection returns a channel that is closed when the connection is lost.
func (r *Router) connection() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// A ShardError says that no replica of a shard answered, and why.
type ShardError struct {
	Shard int
	Nodes []string
	Err   error
}

func (e *ShardError) Error() string {
	return fmt.Sprintf("fddhdb: shard %d, on nodes %s: no answer: %v", e.Shard, strings.Join(e.Nodes, ", "),
		e.Err)
}

func (e *ShardError) Unwrap() error { return e.Err }

// suspect has a node asked last for a while.
func (r *Router) suspect(node string, so time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if until := time.Now().Add(so); until.After(r.suspects[node]) {
		r.suspects[node] = until
	}
}

// order returns the nodes of a shard in the order in which to ask them: first the node in this program, then
// others in rotation, and last the nodes that were recently silent or late, or refused.
func (r *Router) order(shard int, turn uint64) []string {
	nodes := slices.Clone(r.places.Nodes(shard))
	if len(nodes) == 0 {
		return nil
	}
	slices.Sort(nodes) // so that shards of the same nodes go to one
	k := int(turn % uint64(len(nodes)))
	nodes = append(nodes[k:], nodes[:k]...)
	if r.local != nil {
		if k := slices.Index(nodes, r.local.Name()); k > 0 {
			nodes = slices.Insert(slices.Delete(nodes, k, k+1), 0, r.local.Name())
		}
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(nodes, func(a, b string) int {
		as, bs := r.suspects[a].After(now), r.suspects[b].After(now)
		switch {
		case as == bs:
			return 0
		case bs:
			return -1
		}
		return 1
	})
	return nodes
}
