package cluster

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// Replicas of a shard are equal at each message of its log, and apply every message. Compare finds out when
// they are not, as after a fault of memory, and Rebuild mends it. Skip is for a message that stops all of
// them.

// A Comparison is the result of Compare.
type Comparison struct {
	Shard       int          `json:"shard"`
	Nodes       []string     `json:"nodes"` // with the replicas that were compared
	Differences []Difference `json:"differences"`

	// Left has the nodes whose replicas were not compared, and why.
	Left map[string]string `json:"left,omitempty"`
}

// A Difference is a part of a shard that is not the same on all nodes.
type Difference struct {
	Part  string     `json:"part"`  // collection and kind of record
	Nodes [][]string `json:"nodes"` // each has the nodes that agree, most of them first
}

// Compare compares the replicas of a shard at one message of its log: schemas, labels, items, and the codes
// of each space. Each replica reads all that it has. Searches and writes go on. A replica that has not
// applied the message within ClientOptions.Timeout is left out.
func (c *Client) Compare(ctx context.Context, shard int) (*Comparison, error) {
	if err := c.check(shard); err != nil {
		return nil, err
	}
	ctx, cancel := installing(ctx)
	defer cancel()
	op := wire.Op{Kind: wire.Compare}
	soon, end := context.WithTimeout(ctx, c.opts.Timeout)
	defer end()
	if err := c.do(soon, shard, &op); err != nil {
		return nil, fmt.Errorf("shard %d does not answer: %w", shard, err)
	}
	at := c.sees(shard)
	nodes := c.plan.Nodes(shard)
	digests, errs := make([][]wire.PartDigest, len(nodes)), make([]error, len(nodes))
	var all sync.WaitGroup
	for i, node := range nodes {
		all.Go(func() {
			for begin := time.Now(); ; {
				q := wire.Request{Verb: wire.Digest, Shard: shard, ID: op.ID, From: at, Wait: 2000}
				once, end := context.WithTimeout(ctx, c.opts.Timeout)
				a, err := c.call(once, c.cluster.Read(node), q.Encode)
				end()
				if err == nil {
					digests[i] = a.Digests
				}
				reads := a != nil && a.Applied >= at // it takes the digests
				if errs[i] = err; err == nil || wire.Final(err) || ctx.Err() != nil ||
					!reads && time.Since(begin) > c.opts.Timeout {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	all.Wait()
	out := &Comparison{Shard: shard, Differences: []Difference{}, Left: map[string]string{}}
	groups := map[string]map[string][]string{} // by part and digest
	for i, node := range nodes {
		if errs[i] != nil {
			out.Left[node] = errs[i].Error()
			continue
		}
		out.Nodes = append(out.Nodes, node)
		for _, d := range digests[i] {
			if groups[d.Part] == nil {
				groups[d.Part] = map[string][]string{}
			}
			sum := hex.EncodeToString(d.Sum)
			groups[d.Part][sum] = append(groups[d.Part][sum], node)
		}
	}
	for _, part := range slices.Sorted(maps.Keys(groups)) {
		d := Difference{Part: part}
		agree := 0
		for _, nodes := range groups[part] {
			d.Nodes = append(d.Nodes, nodes)
			agree = max(agree, len(nodes))
		}
		if agree == len(out.Nodes) {
			continue
		}
		slices.SortFunc(d.Nodes, func(a, b []string) int {
			return cmp.Or(len(b)-len(a), strings.Compare(a[0], b[0]))
		})
		out.Differences = append(out.Differences, d)
	}
	return out, nil
}

// check refuses a number of no shard.
func (c *Client) check(shard int) error {
	if shard < 0 || shard >= c.Shards() {
		return fmt.Errorf("%w: shard %d: there are shards 0 to %d", db.ErrInvalid, shard, c.Shards()-1)
	}
	return nil
}

// Rebuild makes the replica of a shard on a node again, of a backup that it first has another node make, and
// of the log. The database of before stays beside it, for inspection. It returns when the new replica has
// caught up. waits, unless nil, hears why it waits.
func (c *Client) Rebuild(ctx context.Context, shard int, node string, waits func(why string)) error {
	ctx, cancel := installing(ctx)
	defer cancel()
	if err := c.check(shard); err != nil {
		return err
	}
	nodes := slices.DeleteFunc(slices.Clone(c.plan.Nodes(shard)), func(n string) bool { return n == node })
	if len(nodes) == len(c.plan.Nodes(shard)) {
		return fmt.Errorf("%w: shard %d on node %s", db.ErrNotFound, shard, node)
	}
	if _, err := c.backup(ctx, shard, nodes); err != nil {
		return fmt.Errorf("a backup of another node: %w", err)
	}
	if _, err := c.order(ctx, node, wire.Order{Do: wire.Rebuild, Shard: shard}); err != nil {
		return fmt.Errorf("node %s: %w", node, err)
	}
	return c.caughtUp(ctx, shard, node, waits)
}

// A Stop is a message that the replicas of a shard cannot apply.
type Stop struct {
	Shard   int    `json:"shard"`
	Seq     uint64 `json:"seq"`
	Message string `json:"message"` // what it is, as far as this program can read it
	Problem string `json:"problem"` // of the replicas
}

// Stopped returns the message that stops a shard. It is db.ErrNotFound unless all replicas cannot apply the
// same message.
func (c *Client) Stopped(ctx context.Context, shard int) (*Stop, error) {
	if err := c.check(shard); err != nil {
		return nil, err
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	var stop *Stop
	for _, node := range c.plan.Nodes(shard) {
		s, err := c.status(ctx, node)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(s.Shards, func(r ReplicaStatus) bool { return r.Shard == shard })
		switch {
		case i < 0:
			return nil, fmt.Errorf("%w: shard %d on node %s", db.ErrNotFound, shard, node)
		case s.Shards[i].Stopped == 0 || stop != nil && stop.Seq != s.Shards[i].Stopped:
			return nil, fmt.Errorf("%w: a message that stops all replicas of shard %d: node %s goes on, or stands at another one",
				db.ErrNotFound, shard, node)
		case stop == nil:
			stop = &Stop{Shard: shard, Seq: s.Shards[i].Stopped, Problem: s.Shards[i].Problem}
		}
	}
	if stop == nil {
		return nil, fmt.Errorf("%w: no node has shard %d", db.ErrNotFound, shard)
	}
	m, err := c.logs[shard].At(ctx, stop.Seq)
	if err != nil {
		return nil, err
	}
	stop.Message = fmt.Sprintf("%d bytes that this program cannot read", len(m.Data))
	if op, err := wire.DecodeOp(m.Data); err == nil {
		stop.Message = op.Kind.String()
		if op.Collection != "" {
			stop.Message += fmt.Sprintf(" on collection %q", op.Collection)
		}
		for _, ch := range op.Changes {
			stop.Message += fmt.Sprintf(", item %q of %q", ch.Item.Key, ch.Collection)
		}
	}
	return stop, nil
}

// Skip makes the replicas of a shard pass over the message that stops them. What it would have changed is
// lost. Skip returns when a replica goes on. It is db.ErrConflict if another message stops them now.
func (c *Client) Skip(ctx context.Context, s *Stop) error {
	if now, err := c.Stopped(ctx, s.Shard); err != nil {
		return err
	} else if now.Seq != s.Seq {
		return fmt.Errorf("%w: message %d stops shard %d, not %d", db.ErrConflict, now.Seq, s.Shard, s.Seq)
	}
	return c.do(ctx, s.Shard, &wire.Op{Kind: wire.Skip, Of: s.Seq})
}
