package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// A Placement names the nodes that have a shard.
type Placement struct {
	Shard int // its number
	Nodes []string
}

// Placement returns the nodes of each shard, by number of the shard. The numbers begin with 0 in a cluster
// that has not grown.
func (c *Client) Placement() []Placement {
	v := c.view.Load()
	all := make([]Placement, v.Shards)
	for i := range all {
		all[i] = Placement{v.Number(i), slices.Clone(c.plan.Nodes(v.Number(i)))}
	}
	return all
}

// Move moves a replica of a shard from one node to another. The new node joins by a backup or by the log, and
// serves only when it has caught up; then the old node leaves. Requests are answered all the time. If the
// context ends early, both nodes have the shard: call Move again.
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
		if !slices.Contains(nodes, to) { // another client moves it
			return nil, fmt.Errorf("%w: shard %d has left node %s meanwhile", db.ErrConflict, shard, to)
		}
		return slices.DeleteFunc(nodes, func(n string) bool { return n == from }), nil
	})
}

// caughtUp waits until a node has applied all messages that the log of a shard has now.
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

// status asks one node for its status.
func (c *Client) status(ctx context.Context, node string) (NodeStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	d, err := c.order(ctx, node, order{Do: "status"})
	if err != nil || d.Status == nil {
		return NodeStatus{}, fmt.Errorf("node %s does not answer: %w", node, cmp.Or(err, error(wire.ErrAnswer)))
	}
	return *d.Status, nil
}

// Drain moves all shards of a node to other nodes, those with the fewest shards first, so that you can shut
// the node down. While a cluster grows it moves shards and their parts.
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
