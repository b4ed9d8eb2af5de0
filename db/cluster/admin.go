package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/replica"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// An order asks a node to do something: a backup, a sweep, or a step of a training or an update.
type order struct {
	Do    string `json:"do"`
	ID    string `json:"id,omitempty"` // by which status says whether it is being carried out
	Shard int    `json:"shard"`
	Trim  bool   `json:"trim,omitempty"`
	Keep  uint64 `json:"keep,omitempty"`
	Exact bool   `json:"exact,omitempty"` // the backup goes to one sequence, which is known, and is From at least

	// Of a training: see internal/replica. What is large goes by objects.
	Session    string   `json:"session,omitempty"`
	Collection string   `json:"collection,omitempty"`
	From       uint64   `json:"from,omitempty"`
	Space      db.Space `json:"space,omitempty"`
	Into       string   `json:"into,omitempty"` // object for the survey, the sum, or the model
	Sum        string   `json:"sum,omitempty"`  // object, a replica.SumOrder
}

// A done is the answer to an order.
type done struct {
	Fault  *wire.Fault     `json:"fault,omitempty"`
	Backed *replica.Backed `json:"backed,omitempty"`
	Status *NodeStatus     `json:"status,omitempty"`
	Going  bool            `json:"going,omitempty"` // of status: the order with the ID is being carried out
}

// admin carries out an order, in a goroutine of its own.
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
	if n.closed { // nobody waits for what begins now
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

func (n *Node) carryOut(o order) (*replica.Backed, error) {
	n.mu.RLock()
	r := n.replicas[o.Shard]
	n.mu.RUnlock()
	if r == nil {
		return nil, fmt.Errorf("%w: shard %d, node %s", wire.ErrNotHere, o.Shard, n.opts.Node)
	}
	store := objects{n.js, n.cluster}
	switch {
	case o.Do == "backup":
		b, err := r.Backup(n.ctx, o.Exact, o.From)
		if err == nil && o.Trim && b.Least > o.Keep {
			err = r.Journal.Trim(n.ctx, b.Least+1-o.Keep)
		}
		return b, err
	case o.Do == "sweep":
		removed, err := n.sweep(n.ctx, r.Layout)
		if err != nil {
			n.opts.Log.Warn("objects that no log names stay for now", "removed", removed, "error", err)
		} else if removed > 0 {
			n.opts.Log.Info("removed objects that no log names any more", "objects", removed)
		}
		return nil, err
	case o.Do == "survey":
		s, err := r.Survey(n.ctx, o.Session, o.Collection, o.From)
		if err != nil {
			return nil, err
		}
		b, err := s.Marshal()
		if err != nil {
			return nil, err
		}
		return nil, store.put(n.ctx, o.Into, b)
	case o.Do == "sum":
		asked, err := store.fetch(n.ctx, o.Sum)
		if err != nil {
			return nil, err
		}
		var sum replica.SumOrder
		if err := json.Unmarshal(asked, &sum); err != nil {
			return nil, fmt.Errorf("%w: %w", db.ErrInvalid, err)
		}
		b, err := r.Sum(n.ctx, o.Session, sum)
		if err != nil {
			return nil, err
		}
		return nil, store.put(n.ctx, o.Into, b)
	case o.Do == "model":
		ctx, cancel := context.WithTimeout(n.ctx, answerFor)
		defer cancel()
		b, err := r.Model(ctx, o.Collection, o.Space, o.From)
		if err != nil {
			return nil, err
		}
		return nil, store.put(n.ctx, o.Into, b)
	case o.Do == "end":
		r.EndSession(o.Session)
		return nil, nil
	}
	return nil, fmt.Errorf("%w: order %.80q: the node is of another version", db.ErrInvalid, o.Do)
}

// BackupOptions say what Client.Backup does besides storing backups. The zero value stores them and nothing else.
type BackupOptions struct {
	// Trim removes from each log what its backup holds, once that has been read again and is whole, but for
	// the Keep latest messages of it: a node that has been away for longer begins with the backup. Then it
	// removes the objects that no log names any more and that are three hours old. If that fails the backups are
	// good all the same: the node that does it logs why, and the next backup with Trim makes up for it.
	Trim bool
	Keep uint64 // messages; 0 means 10,000

	// Progress, unless nil, is called with each backup that is done.
	Progress func(b Backup)
}

// A Backup is the backup of one shard.
type Backup struct {
	Shard int    // its number
	Node  string // that has made it
	ID    string
	Items int

	// Position is the sequence of the log that it goes to, at least.
	Position uint64
}

// Backup has a node of each shard store a backup of it where the nodes have their backups
// (NodeOptions.Backups), one shard after the other, and read it again. Writes and searches go on. The
// backups are of different moments: each is its shard as behind some message of its log. An error names the
// shards that have none.
func (c *Client) Backup(ctx context.Context, o BackupOptions) (all []Backup, err error) {
	o.Keep = cmp.Or(o.Keep, 10_000)
	v := c.view.Load()
	for i := range v.Shards {
		shard := v.Number(i)
		b, berr := c.backup(ctx, shard, order{Trim: o.Trim, Keep: o.Keep})
		if berr != nil {
			err = errors.Join(err, fmt.Errorf("shard %d: %w", shard, berr))
			continue
		}
		all = append(all, b)
		if o.Progress != nil {
			o.Progress(b)
		}
	}
	if o.Trim && len(all) > 0 {
		last := all[len(all)-1]
		_, _ = c.order(ctx, last.Node, order{Do: "sweep", Shard: last.Shard}) // see Trim
	}
	return all, err
}

// backup has one of the nodes of a shard make a backup.
func (c *Client) backup(ctx context.Context, shard int, o order) (Backup, error) {
	node, b, err := c.backed(ctx, shard, o)
	if err != nil {
		return Backup{}, err
	}
	return Backup{Shard: shard, Node: node, ID: b.Backup, Items: b.Items, Position: b.Least}, nil
}

// backed is backup, with all that the node says of it.
func (c *Client) backed(ctx context.Context, shard int, o order) (node string, b *replica.Backed, err error) {
	o.Do, o.Shard = "backup", shard
	err = fmt.Errorf("%w: no node has it", db.ErrNotFound)
	for _, node := range c.plan.Nodes(shard) {
		var d done
		if d, err = c.order(ctx, node, o); err == nil && d.Backed != nil {
			return node, d.Backed, nil
		}
		err = fmt.Errorf("node %s: %w", node, cmp.Or(err, error(wire.ErrAnswer)))
	}
	return "", nil, err
}

// order gives a node an order and waits until it has carried it out.
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

// watch ends an order that nobody will answer: the servers do not answer what a connection may not ask, and
// nobody answers for a node that has ended in the middle, or where the order or the answer has been lost.
func (c *Client) watch(ctx context.Context, cancel context.CancelCauseFunc, subject, id string) {
	before := c.nc.LastError()
	ask, _ := json.Marshal(order{Do: "status", ID: id})
	silent, lost := 0, 0
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
		if err := c.nc.LastError(); err != before && journal.Forbidden(c.nc, subject) {
			cancel(fmt.Errorf("%w: publish to %s", nats.ErrPermissionViolation, subject))
			return
		}
		if n%60 != 0 {
			continue
		}
		try, done := context.WithTimeout(ctx, 2*time.Second)
		m, err := c.nc.RequestWithContext(try, subject, ask)
		done()
		if silent++; err == nil {
			silent = 0
			if lost++; going(m.Data) {
				lost = 0
			}
		}
		if lost == 2 {
			cancel(fmt.Errorf("%w: the node does not carry out the order: it, or the answer, has been lost", wire.ErrAnswer))
			return
		}
		if silent == 3 {
			cancel(fmt.Errorf("%w: the node has not answered for some seconds", wire.ErrAnswer))
			return
		}
	}
}

// going reports whether the answer of a node to a question for its status says that an order is being carried out.
func going(answer []byte) bool {
	var d done
	return json.Unmarshal(answer, &d) == nil && d.Going
}

// A Placement says which nodes have a shard.
type Placement struct {
	Shard int // its number
	Nodes []string
}

// Placement returns the nodes that have each shard, in the order of the numbers of the shards. These begin with 0
// in a cluster that has not grown.
func (c *Client) Placement() []Placement {
	v := c.view.Load()
	all := make([]Placement, v.Shards)
	for i := range all {
		all[i] = Placement{v.Number(i), slices.Clone(c.plan.Nodes(v.Number(i)))}
	}
	return all
}

// Nodes returns how the nodes are that answer within a second: those with shards, and others that were
// opened for the cluster.
func (c *Client) Nodes(ctx context.Context) ([]NodeStatus, error) {
	return ask(ctx, c.nc, string(c.cluster), time.Second, c.plan.All())
}

// Move has a node take over a replica of a shard from another one. The new one joins, by a backup or by the
// log, and is asked only when it has caught up; then the old one leaves. Nothing is unanswered meanwhile. If
// the context ends before, both have the shard: call it again.
func (c *Client) Move(ctx context.Context, shard int, from, to string) error {
	if !slices.Contains(c.plan.Shards(), shard) {
		return fmt.Errorf("%w: shard %d: there are %v", db.ErrInvalid, shard, c.view.Load().Layout)
	}
	if from == to {
		return fmt.Errorf("%w: from node %s to itself", db.ErrInvalid, from)
	}
	if _, err := c.status(ctx, to); err != nil {
		return err
	}
	err := c.plan.Change(ctx, shard, func(nodes []string) ([]string, error) {
		if !slices.Contains(nodes, from) {
			return nil, fmt.Errorf("%w: shard %d on node %s", db.ErrNotFound, shard, from)
		}
		if slices.Contains(nodes, to) {
			return nodes, nil
		}
		return append(nodes, to), nil
	})
	if err != nil {
		return err
	}
	if err := c.caughtUp(ctx, shard, to); err != nil {
		return fmt.Errorf("shard %d on node %s: %w", shard, to, err)
	}
	return c.plan.Change(ctx, shard, func(nodes []string) ([]string, error) {
		if !slices.Contains(nodes, to) { // somebody else moves it
			return nil, fmt.Errorf("%w: shard %d has left node %s meanwhile", db.ErrConflict, shard, to)
		}
		return slices.DeleteFunc(nodes, func(n string) bool { return n == from }), nil
	})
}

// caughtUp waits until a node has applied what the log of a shard has now.
func (c *Client) caughtUp(ctx context.Context, shard int, node string) error {
	info, err := journal.New(c.js, c.cluster, shard).Info(ctx)
	if err != nil {
		return err
	}
	problem := "it does not answer"
	for {
		n, err := c.status(ctx, node)
		if err != nil {
			problem = err.Error()
		}
		for _, s := range n.Shards {
			if s.Shard != shard {
				continue
			}
			if s.Problem == "" && s.Applied >= info.Last {
				return nil
			}
			problem = cmp.Or(s.Problem, fmt.Sprintf("it is at %d of %d", s.Applied, info.Last))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", context.Cause(ctx), problem)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// status asks one node how it is.
func (c *Client) status(ctx context.Context, node string) (NodeStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	d, err := c.order(ctx, node, order{Do: "status"})
	if err != nil || d.Status == nil {
		return NodeStatus{}, fmt.Errorf("node %s does not answer: %w", node, cmp.Or(err, error(wire.ErrAnswer)))
	}
	return *d.Status, nil
}

// Drain moves all shards of a node to others, those with the fewest shards first, so that it can be shut
// down. While a cluster grows these are its shards and their parts.
func (c *Client) Drain(ctx context.Context, node string) error {
	all, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, shard := range c.plan.Shards() {
		nodes := c.plan.Nodes(shard)
		if !slices.Contains(nodes, node) {
			continue
		}
		loads := map[string]int{}
		for _, s := range c.plan.Shards() {
			for _, n := range c.plan.Nodes(s) {
				loads[n]++
			}
		}
		to := ""
		for _, n := range all {
			if n.Node != node && !slices.Contains(nodes, n.Node) && (to == "" || loads[n.Node] < loads[to]) {
				to = n.Node
			}
		}
		if to == "" {
			return fmt.Errorf("%w: no node can take shard %d: those that answer have it already", db.ErrInvalid, shard)
		}
		if err := c.Move(ctx, shard, node, to); err != nil {
			return err
		}
	}
	return nil
}
