package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// mostRequests bounds the requests that are being answered, or wait for the log.
const mostRequests = 1024

// answerFor bounds the time of one request.
const answerFor = time.Minute

// listen subscribes to requests: by Conn to requests from all servers, and by each connection to requests
// sent at its own server. It uses no endpoint of package micro, which knows only one connection.
func (n *Node) listen() (err error) {
	if n.reads, err = n.opts.Conn.Subscribe(n.cluster.Read(n.opts.Node), n.read); err != nil {
		return err
	}
	for _, nc := range append([]*nats.Conn{n.opts.Conn}, n.opts.Conns...) {
		n.done.Go(func() { n.near(nc) })
	}
	return nil
}

// near answers requests sent at the current server of a connection, until Close. If several connections of
// the node are at one server, either takes a request.
func (n *Node) near(nc *nats.Conn) {
	changed := nc.StatusChanged(nats.CONNECTED)
	defer nc.RemoveStatusListener(changed)
	var sub *nats.Subscription
	end := func() {
		if sub != nil {
			_ = sub.Unsubscribe() // the error would say that the connection is closed
		}
	}
	for server := ""; ; {
		if at := nc.ConnectedServerId(); at != "" && at != server {
			end()
			var err error
			if sub, err = nc.QueueSubscribe(n.cluster.Near(n.opts.Node, at), "node", n.read); err != nil {
				n.opts.Log.Warn("requests come by way of another server", "server", at, "error", err)
				at = "" // tried again when the connection changes
			}
			server = at
		}
		select {
		case <-changed:
		case <-n.ctx.Done():
			end()
			return
		}
	}
}

// read answers a request, in a goroutine of the pool.
func (n *Node) read(m *nats.Msg) {
	respond := func(a *wire.Answer) {
		b, err := a.Encode()
		if err == nil {
			b, err = n.parts.first(b, int(n.opts.Conn.MaxPayload()))
		}
		if err != nil {
			b, _ = (&wire.Answer{Fault: wire.FaultOf(err)}).Encode()
		}
		if err := m.Respond(b); err != nil {
			n.opts.Log.Debug("an answer was not sent", "error", err)
		}
	}
	q, err := wire.DecodeRequest(m.Data)
	if err != nil {
		respond(&wire.Answer{Fault: wire.FaultOf(fmt.Errorf("%w: %w", db.ErrInvalid, err))})
		return
	}
	requests := int64(max(1, len(q.Requests)))
	if busy := n.busy.Add(requests); busy > mostRequests && busy != requests { // a single message may have any number
		n.busy.Add(-requests)
		respond(&wire.Answer{Fault: wire.FaultOf(fmt.Errorf("%w: %d requests are waiting", wire.ErrAnswer, busy-requests))})
		return
	}
	n.crew.do(func() {
		defer n.busy.Add(-requests)
		ctx, cancel := context.WithTimeout(n.ctx, answerFor)
		defer cancel()
		respond(n.answer(ctx, q))
	})
}

// here is a node as clients in its program see it. Only the caller's context bounds a request.
type here struct{ *Node }

func (n here) Name() string { return n.opts.Node }

func (n here) Ask(ctx context.Context, q *wire.Request, answered func(*wire.Answer)) {
	n.crew.do(func() { answered(n.answer(ctx, q)) })
}

// answer answers a request. It turns a panic into an answer.
func (n *Node) answer(ctx context.Context, q *wire.Request) (a *wire.Answer) {
	defer func() {
		if p := recover(); p != nil {
			n.opts.Log.Error("panic in a request", "panic", p)
			a = &wire.Answer{Fault: wire.FaultOf(fmt.Errorf("%w: panic: %v", wire.ErrAnswer, p))}
		}
	}()
	switch q.Verb {
	case wire.Rest:
		return n.parts.rest(q, int(n.opts.Conn.MaxPayload()))
	case wire.Several:
		if len(q.Requests) > maxShards {
			return &wire.Answer{Fault: wire.FaultOf(fmt.Errorf("%w: %d requests at a time", db.ErrInvalid, len(q.Requests)))}
		}
		return n.several(ctx, q.Each())
	}
	n.mu.RLock()
	r := n.replicas[q.Shard]
	n.mu.RUnlock()
	if r == nil {
		return &wire.Answer{Fault: wire.FaultOf(fmt.Errorf("%w: shard %d, node %s", wire.ErrNotHere, q.Shard, n.opts.Node))}
	}
	return r.Answer(ctx, q)
}

// several answers requests to several shards in parallel.
func (n *Node) several(ctx context.Context, requests []*wire.Request) *wire.Answer {
	a := &wire.Answer{Answers: make([]*wire.Answer, len(requests))}
	one := func(i int) {
		if q := requests[i]; q == nil || q.Verb == wire.Several {
			a.Answers[i] = &wire.Answer{Fault: wire.FaultOf(fmt.Errorf("%w: a request within requests", db.ErrInvalid))}
		} else {
			a.Answers[i] = n.answer(ctx, q)
		}
	}
	var all sync.WaitGroup
	for i := range max(0, len(requests)-1) {
		all.Add(1)
		n.crew.do(func() {
			defer all.Done()
			one(i)
		})
	}
	if len(requests) > 0 { // the last request runs in this goroutine
		one(len(requests) - 1)
	}
	all.Wait()
	return a
}

// serve starts answering requests.
func (n *Node) serve() (err error) {
	n.service, err = micro.AddService(n.opts.Conn, micro.Config{
		Name: "fddhdb-node", Version: "0.1.0", Description: "shards of a cluster of fddhdb",
		Metadata: map[string]string{"cluster": n.opts.Cluster, "node": n.opts.Node}, QueueGroupDisabled: true,
	})
	if err != nil {
		return err
	}
	err = errors.Join(
		n.service.AddEndpoint("nodes", micro.HandlerFunc(n.say), micro.WithEndpointSubject(n.cluster.Nodes())),
		n.service.AddEndpoint("admin", micro.HandlerFunc(n.admin), micro.WithEndpointSubject(n.cluster.Admin(n.opts.Node))),
		n.listen(),
	)
	if err != nil {
		return errors.Join(err, n.service.Stop())
	}
	return nil
}
