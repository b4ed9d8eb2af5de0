package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/replica"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// An order asks a node for an action: a backup, a sweep, or a step of a training or an update.
type order struct {
	Do    string `json:"do"`
	ID    string `json:"id,omitempty"` // lets status say whether the order is being carried out
	Shard int    `json:"shard"`
	Trim  bool   `json:"trim,omitempty"`
	Keep  uint64 `json:"keep,omitempty"`
	Exact bool   `json:"exact,omitempty"` // the backup ends at one known sequence, From or later

	// For a training: see internal/replica. Large data goes by objects.
	Session    string   `json:"session,omitempty"`
	Collection string   `json:"collection,omitempty"`
	From       uint64   `json:"from,omitempty"`
	Space      db.Space `json:"space,omitempty"`
	Into       string   `json:"into,omitempty"` // object for the survey, the sum, or the model
	Sum        string   `json:"sum,omitempty"`  // object with a replica.SumOrder
}

// A done is the answer to an order.
type done struct {
	Fault  *wire.Fault     `json:"fault,omitempty"`
	Backed *replica.Backed `json:"backed,omitempty"`
	Status *NodeStatus     `json:"status,omitempty"`
	Going  bool            `json:"going,omitempty"` // for status: the order with the ID is being carried out
}

// admin carries out an order, in a new goroutine.
func (n *Node) admin(m micro.Request) {
	var o order
	if err := json.Unmarshal(m.Data(), &o); err != nil {
		_ = m.RespondJSON(done{Fault: wire.FaultOf(fmt.Errorf("%w: %w", db.ErrInvalid, err))})
		return
	}
	if o.Do == "status" {
		s := n.Status()
		n.mu.Lock()
		going := n.orders[o.ID]
		n.mu.Unlock()
		_ = m.RespondJSON(done{Status: &s, Going: going})
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
		var d done
		var err error
		defer func() {
			if p := recover(); p != nil {
				n.opts.Log.Error("panic in an order", "panic", p)
				_ = m.RespondJSON(done{Fault: wire.FaultOf(fmt.Errorf("%w: panic: %v", wire.ErrAnswer, p))})
			}
		}()
		d.Backed, err = n.carryOut(o)
		d.Fault = wire.FaultOf(err)
		if err := m.RespondJSON(d); err != nil {
			n.opts.Log.Debug("an answer was not sent", "error", err)
		}
	})
}

// carryOut carries out an order on the replica of its shard. Only a backup has a result.
func (n *Node) carryOut(o order) (*replica.Backed, error) {
	n.mu.RLock()
	r := n.replicas[o.Shard]
	n.mu.RUnlock()
	if r == nil {
		return nil, fmt.Errorf("%w: shard %d, node %s", wire.ErrNotHere, o.Shard, n.opts.Node)
	}
	switch o.Do {
	case "backup":
		b, err := r.Backup(n.ctx, o.Exact, o.From)
		if err == nil && o.Trim && b.Least > o.Keep {
			err = r.Journal.Trim(n.ctx, b.Least+1-o.Keep)
		}
		return b, err
	case "vacant":
		return nil, r.Vacant(n.ctx)
	case "sweep":
		removed, err := n.sweep(n.ctx, r.Layout)
		if err != nil {
			n.opts.Log.Warn("objects that no log names stay for now", "removed", removed, "error", err)
		} else if removed > 0 {
			n.opts.Log.Info("removed objects that no log names any more", "objects", removed)
		}
		return nil, err
	case "survey", "sum", "model":
		b, err := n.trainingStep(r, o)
		if err != nil {
			return nil, err
		}
		return nil, objects{n.js, n.cluster}.put(n.ctx, o.Into, b)
	case "end":
		r.EndSession(o.Session)
		return nil, nil
	}
	return nil, fmt.Errorf("%w: order %.80q: the node is of another version", db.ErrInvalid, o.Do)
}

// order sends an order to a node and waits until the node has carried it out.
func (c *Client) order(ctx context.Context, node string, o order) (d done, err error) {
	o.ID = wire.NewID().String()
	b, err := json.Marshal(o)
	if err != nil {
		return d, err
	}
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 24*time.Hour)
		defer cancel()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	subject := c.cluster.Admin(node)
	go c.watch(ctx, cancel, subject, o.ID)
	m, err := c.nc.RequestWithContext(ctx, subject, b)
	if err != nil {
		return d, cmp.Or(context.Cause(ctx), err)
	}
	if err := json.Unmarshal(m.Data, &d); err != nil {
		return d, err
	}
	if d.Fault != nil {
		return d, d.Fault
	}
	return d, nil
}

// orderShard sends an order for a shard to its nodes, one after the other, until one has carried it out, or
// has an error that every node would have (wire.Final). It returns that node.
func (c *Client) orderShard(ctx context.Context, o order) (node string, err error) {
	err = fmt.Errorf("%w: no node has it", db.ErrNotFound)
	for _, node = range c.plan.Nodes(o.Shard) {
		if _, err = c.order(ctx, node, o); err == nil || wire.Final(err) {
			break
		}
	}
	return node, err
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
func (c *Client) watch(ctx context.Context, cancel context.CancelCauseFunc, subject, id string) {
	before := c.nc.LastError()
	ask, _ := json.Marshal(order{Do: "status", ID: id})
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
			cancel(fmt.Errorf("%w: the node does not carry out the order: it, or the answer, has been lost", wire.ErrAnswer))
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
	var d done
	return json.Unmarshal(answer, &d) == nil && d.Going
}
