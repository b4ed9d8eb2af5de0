package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/replica"
	"github.com/fddhdb/fddhdb/db/cluster/internal/retry"
	"github.com/fddhdb/fddhdb/db/cluster/internal/vault"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// admin takes an order, and carries it out in a new goroutine.
func (n *Node) admin(m micro.Request) {
	o, err := wire.DecodeOrder(m.Data())
	if err == nil && o.Do == wire.Uploaded {
		b := n.parts.take(o.ID)
		if b == nil {
			n.respond(m, &wire.Answer{Fault: wire.FaultOf(
				fmt.Errorf("%w: the order is not there any more", wire.ErrAnswer))})
			return
		}
		o, err = wire.DecodeOrder(b)
	}
	if err != nil {
		n.respond(m, &wire.Answer{Fault: wire.FaultOf(fmt.Errorf("%w: %w", db.ErrInvalid, err))})
		return
	}
	switch o.Do {
	case wire.Status:
		b, err := json.Marshal(n.Status())
		n.mu.Lock()
		going := n.orders[o.ID]
		n.mu.Unlock()
		n.respond(m, &wire.Answer{Fault: wire.FaultOf(err), Data: b, Going: going})
		return
	case wire.Upload:
		n.respond(m, &wire.Answer{Fault: wire.FaultOf(n.parts.add(o.ID, o.Offset, o.Data))})
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed { // no client waits for new work
		return
	}
	n.orders[o.ID] = true
	n.done.Go(func() {
		defer func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			delete(n.orders, o.ID)
		}()
		defer func() {
			if p := recover(); p != nil {
				n.opts.Log.Error("panic in an order", "panic", p)
				err := fmt.Errorf("%w: panic: %v", wire.ErrAnswer, p)
				n.respond(m, &wire.Answer{Fault: wire.FaultOf(err)})
			}
		}()
		a, err := n.carryOut(o)
		if err != nil {
			a = &wire.Answer{Fault: wire.FaultOf(err)}
		}
		n.respond(m, a)
	})
}

// carryOut carries out an order.
func (n *Node) carryOut(o *wire.Order) (a *wire.Answer, err error) {
	a = &wire.Answer{}
	if o.Do == wire.Sum {
		a.Data, err = n.sum(o)
		return a, err
	}
	r, err := n.replica(o.Shard)
	if err != nil {
		return nil, err
	}
	switch o.Do {
	case wire.Backup:
		b, err := r.Backup(n.ctx)
		if err == nil {
			a.Data, err = json.Marshal(b)
		}
		return a, err
	case wire.Find:
		ctx, cancel := context.WithTimeout(n.ctx, findFor)
		defer cancel()
		from, err := r.Vault.Repository(ctx, o.Shard)
		if err == nil {
			_, err = backup.Find(ctx, from, backup.Choice{ID: o.File})
		}
		var e vault.Entry
		if err == nil {
			e, err = r.Vault.Entry(ctx, o.Shard)
		}
		if err == nil {
			a.Data, err = json.Marshal(e)
		}
		return a, err
	case wire.Survey:
		a.Survey, err = r.Survey(n.ctx, o.Session, o.Collection, o.From)
	case wire.Model:
		ctx, cancel := context.WithTimeout(n.ctx, answerFor)
		defer cancel()
		a.Data, err = r.Model(ctx, o.Collection, o.Space, o.From)
	case wire.End:
		r.EndSession(o.Session)
	case wire.Rebuild:
		r.Rebuild()
	default:
		return nil, fmt.Errorf("%w: order %d: the node is of another version", db.ErrInvalid, o.Do)
	}
	return a, err
}

// replica returns the replica of a shard.
func (n *Node) replica(shard int) (*replica.Replica, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if r := n.replicas[shard]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("%w: shard %d, node %s", wire.ErrNotHere, shard, n.opts.Node)
}

// respond answers a request or an order.
func (n *Node) respond(m micro.Request, a *wire.Answer) {
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

// order sends an order to a node and waits until the node has carried it out.
func (c *Client) order(ctx context.Context, node string, o wire.Order) (a *wire.Answer, err error) {
	o.ID = wire.NewID()
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 24*time.Hour)
		defer cancel()
	}
	b, err := o.Encode()
	if err != nil {
		return nil, err
	}
	subject := c.cluster.Admin(node)
	if len(b) > wire.MaxChunk {
		offset := 0
		for some := range slices.Chunk(b, wire.MaxChunk) {
			up := wire.Order{Do: wire.Upload, ID: o.ID, Offset: offset, Data: some}
			if _, err := c.call(ctx, subject, up.Encode); err != nil {
				return nil, err
			}
			offset += len(some)
		}
		if b, err = (&wire.Order{Do: wire.Uploaded, ID: o.ID}).Encode(); err != nil {
			return nil, err
		}
	}
	going, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go c.watch(going, cancel, subject, o.ID)
	m, err := c.nc.RequestWithContext(going, subject, b)
	if err != nil {
		return nil, cmp.Or(context.Cause(going), err)
	}
	return c.answer(ctx, node, m.Data)
}

// answer reads an answer of a node, of which the message may have the first part.
func (c *Client) answer(ctx context.Context, node string, b []byte) (*wire.Answer, error) {
	a, err := wire.DecodeAnswer(b)
	if err == nil && a.Part != nil {
		var all []byte
		for p := a.Part; err == nil; p = a.Part {
			if p == nil || len(p.Data) == 0 || p.Total > wire.MaxAnswer {
				return nil, fmt.Errorf("%w: a part without bytes, or of too many", wire.ErrAnswer)
			}
			if all = append(all, p.Data...); len(all) >= p.Total {
				break
			}
			rest := wire.Request{Verb: wire.Rest, ID: p.ID, Offset: len(all)}
			a, err = c.call(ctx, c.cluster.Read(node), rest.Encode)
		}
		if err == nil {
			a, err = wire.DecodeAnswer(all)
		}
	}
	if err == nil && a.Fault != nil {
		err = a.Fault
	}
	return a, err
}

// callMost bounds the time in which call repeats a request.
const callMost = 15 * time.Second

// call makes a request of little work to a node, and repeats it if no answer comes. It returns no answer with
// a fault.
func (c *Client) call(ctx context.Context, subject string, request func() ([]byte, error)) (a *wire.Answer,
	err error) {
	b, err := request()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callMost)
	defer cancel()
	err = retry.Do(ctx, func(ctx context.Context) error {
		m, err := c.nc.RequestWithContext(ctx, subject, b)
		if err == nil {
			a, err = wire.DecodeAnswer(m.Data)
		}
		return err
	})
	if err == nil && a.Fault != nil {
		err = a.Fault
	}
	return a, err
}

// orderShard sends an order for a shard to its nodes, one after the other, until one has carried it out, or
// has an error that every node would have (wire.Final). It asks nodes in last after the others. It returns
// that node.
func (c *Client) orderShard(ctx context.Context, o wire.Order,
	last map[string]bool) (a *wire.Answer, node string, err error) {
	nodes := slices.Clone(c.plan.Nodes(o.Shard))
	slices.SortStableFunc(nodes, func(a, b string) int {
		switch {
		case last[a] == last[b]:
			return 0
		case last[a]:
			return 1
		}
		return -1
	})
	err = fmt.Errorf("%w: no node has it", db.ErrNotFound)
	for _, node = range nodes {
		if a, err = c.order(ctx, node, o); err == nil || wire.Final(err) {
			break
		}
		err = fmt.Errorf("node %s: %w", node, err)
	}
	return a, node, err
}

// Limits after which watch gives up an order.
const (
	watchEvery  = 50 * time.Millisecond // between checks whether the servers have refused the order
	watchTicks  = 60                    // checks between questions to the node for its status
	watchFor    = 2 * time.Second       // time for the node to answer
	watchLost   = 2                     // answers in a row that do not know the order
	watchSilent = 3                     // questions in a row without an answer
)

// watch ends an order that will get no answer. The servers ignore a request that the connection may not make.
// The node may have ended in the middle, and the order or the answer may have been lost.
func (c *Client) watch(ctx context.Context, cancel context.CancelCauseFunc, subject string, id wire.ID) {
	before := c.nc.LastError()
	ask, _ := (&wire.Order{Do: wire.Status, ID: id}).Encode()
	silent, lost := 0, 0
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchEvery):
		}
		if err := c.nc.LastError(); err != before && journal.Forbidden(c.nc, subject) {
			cancel(fmt.Errorf("%w: publish to %s", nats.ErrPermissionViolation, subject))
			return
		}
		if n%watchTicks != 0 {
			continue
		}
		try, done := context.WithTimeout(ctx, watchFor)
		m, err := c.nc.RequestWithContext(try, subject, ask)
		done()
		if silent++; err == nil {
			silent = 0
			if lost++; going(m.Data) {
				lost = 0
			}
		}
		if lost == watchLost {
			cancel(fmt.Errorf("%w: the node does not carry out the order: it, or the answer, has been lost",
				wire.ErrAnswer))
			return
		}
		if silent == watchSilent {
			cancel(fmt.Errorf("%w: the node has not answered for some seconds", wire.ErrAnswer))
			return
		}
	}
}

// going reports whether a node's answer says that it is carrying out the order.
func going(answer []byte) bool {
	a, err := wire.DecodeAnswer(answer)
	return err == nil && a.Going
}
