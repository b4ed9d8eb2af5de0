// Package route brings a request to a replica of a shard, and its answer back.
//
// A node that is gone says so at once, through NATS, and the next one is asked. One that is slow, or
// stopped, says nothing: when it has taken longer than nineteen of twenty answers take, a second replica is
// asked as well, and the first answer counts. Requests only read, so that it does not matter how often
// one is answered.
package route

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/names"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// A Places says which nodes have a shard.
type Places interface {
	Nodes(shard int) []string
	Refresh() // a node does not have what Nodes says
}

// A Router sends requests. Its methods may be called from any goroutine.
type Router struct {
	nc      *nats.Conn
	cluster names.Cluster
	places  Places
	next    atomic.Uint64
	times   times

	mu       sync.Mutex
	suspects map[string]time.Time // until when a node is asked last
	lost     chan struct{}        // closed when the connection to the server is lost; then there is another one
	closed   chan struct{}        // by Close

	Figures Figures
}

// Figures count what a Router has done.
type Figures struct {
	Requests atomic.Uint64 // that were asked
	Hedges   atomic.Uint64 // asked of a second replica, as the first took long
	Retries  atomic.Uint64 // asked again, as a node was gone or behind
	Failed   atomic.Uint64 // that ended without an answer
}

// New returns a router.
func New(nc *nats.Conn, cluster names.Cluster, places Places) *Router {
	r := &Router{
		nc: nc, cluster: cluster, places: places, suspects: map[string]time.Time{},
		lost: make(chan struct{}), closed: make(chan struct{}),
	}
	go r.listen(nc.StatusChanged(nats.RECONNECTING, nats.CLOSED))
	return r
}

// listen hears when the connection is lost: answers to what has been asked through it do not come.
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

// Close ends the router. Requests that are going on may go on.
func (r *Router) Close() { close(r.closed) }

// connection returns a channel that is closed when the connection is lost.
func (r *Router) connection() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

var errLost = errors.New("the connection to the server was lost")

// A ShardError says that no replica of a shard has answered, and why.
type ShardError struct {
	Shard int
	Nodes []string
	Err   error
}

func (e *ShardError) Error() string {
	return fmt.Sprintf("fddhdb: shard %d, on nodes %s: no answer: %v", e.Shard, strings.Join(e.Nodes, ", "), e.Err)
}

func (e *ShardError) Unwrap() error { return e.Err }

const (
	suspected = time.Second            // a node that has not answered is asked last for so long
	tryFor    = 3 * time.Second        // how long a node may take until it answers
	restFor   = 30 * time.Second       // how long all parts of an answer may take
	lateFor   = 100 * time.Millisecond // a node that was late is asked last for so long
	between   = 20 * time.Millisecond  // between two rounds of all nodes, at first
	mostWait  = 500 * time.Millisecond // and at last
)

// A reply is what a node has sent back.
type reply struct {
	node   string
	answer *wire.Answer
	err    error // it has not answered, or that it cannot; another may
	took   time.Duration
}

// Ask sends the request to a replica of its shard, and to others as long as none answers and the context
// goes on. An error of the request itself, such as db.ErrNotFound, is the error of the answer, a
// *wire.Fault. A *ShardError means that there is no answer.
func (r *Router) Ask(ctx context.Context, req *wire.Request) (*wire.Answer, error) {
	data, err := req.Encode()
	if err != nil {
		return nil, err
	}
	r.Figures.Requests.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var nodes []string
	last := errors.New("no node has it")
	for wait := between; ; wait = min(2*wait, mostWait) {
		nodes = r.order(req.Shard, r.next.Add(1))
		answer, err := r.round(ctx, nodes, data, &last)
		if answer != nil {
			return answer, err
		}
		r.places.Refresh()
		select {
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.Canceled) {
				r.Figures.Failed.Add(1)
			}
			return nil, &ShardError{Shard: req.Shard, Nodes: nodes, Err: fmt.Errorf("%w: %w", context.Cause(ctx), last)}
		case <-time.After(wait):
		}
		r.Figures.Retries.Add(1)
	}
}

// round asks the nodes, one after the other, until one answers; nil where none does. last is the error of
// the last one.
func (r *Router) round(ctx context.Context, nodes []string, data []byte, last *error) (*wire.Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lost := r.connection()
	replies := make(chan reply, len(nodes))
	asked, open := 0, 0
	ask := func() {
		go func(node string) { replies <- r.try(ctx, node, data) }(nodes[asked])
		asked++
		open++
	}
	if len(nodes) == 0 {
		return nil, nil
	}
	ask()
	hedge := time.NewTimer(r.times.late())
	defer hedge.Stop()
	for open > 0 {
		select {
		case got := <-replies:
			open--
			if got.err == nil {
				r.times.add(got.took)
				if got.answer.Fault != nil {
					return got.answer, got.answer.Fault
				}
				return got.answer, nil
			}
			*last = fmt.Errorf("node %s: %w", got.node, got.err)
			if asked < len(nodes) {
				r.Figures.Retries.Add(1)
				ask()
			}
		case <-hedge.C:
			if asked < len(nodes) {
				r.Figures.Hedges.Add(1)
				ask()
				hedge.Reset(r.times.late())
			}
		case <-lost:
			*last = errLost
			return nil, nil
		case <-ctx.Done():
			return nil, nil
		}
	}
	return nil, nil
}

// try asks one node.
func (r *Router) try(ctx context.Context, node string, data []byte) reply {
	begin := time.Now()
	first, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	m, err := r.nc.RequestWithContext(first, r.cluster.Read(node), data)
	got := reply{node: node, err: err, took: time.Since(begin)}
	if err == nil {
		got.answer, got.err = wire.DecodeAnswer(m.Data)
	}
	if got.err == nil && got.answer.Part != nil {
		got.answer, got.err = r.rest(ctx, node, got.answer.Part)
	}
	if f := got.fault(); f != nil && !wire.Final(f) {
		got.err = f
	}
	if got.err != nil && !errors.Is(got.err, context.Canceled) {
		r.suspect(node, suspected)
	}
	return got
}

// suspect has a node asked last for a while.
func (r *Router) suspect(node string, so time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if until := time.Now().Add(so); until.After(r.suspects[node]) {
		r.suspects[node] = until
	}
}

// maxAnswer bounds an answer that comes in parts.
const maxAnswer = 1 << 30

// rest fetches the parts of an answer behind the first one.
func (r *Router) rest(ctx context.Context, node string, p *wire.Part) (*wire.Answer, error) {
	if p.Total > maxAnswer {
		return nil, fmt.Errorf("%w: an answer of %d bytes: at most %d are possible", db.ErrInvalid, p.Total, maxAnswer)
	}
	ctx, cancel := context.WithTimeout(ctx, restFor)
	defer cancel()
	all := p.Data
	for len(all) < p.Total {
		q, err := (&wire.Request{Verb: wire.Rest, ID: p.ID, Offset: len(all)}).Encode()
		if err != nil {
			return nil, err
		}
		m, err := r.nc.RequestWithContext(ctx, r.cluster.Read(node), q)
		if err != nil {
			return nil, err
		}
		a, err := wire.DecodeAnswer(m.Data)
		switch {
		case err != nil:
			return nil, err
		case a.Fault != nil:
			return nil, a.Fault
		case a.Part == nil || len(a.Part.Data) == 0:
			return nil, fmt.Errorf("%w: a part without bytes", wire.ErrAnswer)
		}
		all = append(all, a.Part.Data...)
	}
	return wire.DecodeAnswer(all)
}

func (g *reply) fault() error {
	if g.answer == nil || g.answer.Fault == nil {
		return nil
	}
	return g.answer.Fault
}

// order returns the nodes of a shard in the order in which to ask them: by turn, and last those that have
// not answered of late.
func (r *Router) order(shard int, turn uint64) []string {
	nodes := slices.Clone(r.places.Nodes(shard))
	if len(nodes) == 0 {
		return nil
	}
	slices.Sort(nodes) // so that shards of the same nodes go to one
	k := int(turn % uint64(len(nodes)))
	nodes = append(nodes[k:], nodes[:k]...)
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
